package snapshots

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestFurtherNames: a snapshot is found by each name that it was given, another one of
// its owner's loses it, another owner's does not, and all that over a restart.
func TestFurtherNames(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	make1(t, s, "snap1", "tok-a", "t")
	make1(t, s, "snap2", "tok-a", "t:v2")
	make1(t, s, "snap3", "tok-b", "t:stable")
	check := func(when string, want map[string]string) {
		t.Helper()
		for range 2 {
			for ref, id := range want {
				got, err := s.Find("tok-a", ref)
				if id == "" && errors.Is(err, fault.ErrNotFound) || err == nil && got.ID == id {
					continue
				}
				t.Errorf("%s: %s is %s, %v; want %q", when, ref, got.ID, err, id)
			}
			if got, err := s.Find("tok-b", "t:stable"); err != nil || got.ID != "snap3" {
				t.Errorf("%s: another owner's: %s, %v", when, got.ID, err)
			}
			s = open(t, dir, nil)
		}
	}
	got, err := s.Name("tok-a", "t", []string{"t:stable", "t:v1", "t"})
	must(t, err)
	if got.Name != "t" || !slices.Equal(got.Also, []string{"t:stable", "t:v1"}) {
		t.Errorf("%+v", got)
	}
	check("named", map[string]string{"t": "snap1", "t:stable": "snap1", "t:v1": "snap1", "t:v2": "snap2"})
	_, err = s.Name("tok-a", "snap2", []string{"t:stable", "t"})
	must(t, err)
	check("moved", map[string]string{"t": "snap2", "t:stable": "snap2", "t:v1": "snap1"})
	_, err = s.Name("tok-a", "snap1", []string{"t"})
	must(t, err)
	check("moved back", map[string]string{"t": "snap1", "t:stable": "snap2"})
	_, err = s.Unname("tok-a", "snap1", []string{"t", "t:v1", "t:none"})
	must(t, err)
	check("taken", map[string]string{"t": "", "t:v1": "", "snap1": "snap1"})
	if _, err := s.Name("tok-b", "snap1", []string{"mine"}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("another owner's snapshot: %v", err)
	}
	var many []string
	for i := range maxNames + 1 {
		many = append(many, fmt.Sprint("t:", i))
	}
	if _, err := s.Name("tok-a", "snap2", many); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("too many names: %v", err)
	}
	check("too many", map[string]string{"t:stable": "snap2", "t:0": ""})
}

// TestTheNewestHasANameAfterACrash: one that was published with names that an older one
// did not lose yet.
func TestTheNewestHasANameAfterACrash(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	make1(t, s, "snap1", "", "a")
	make1(t, s, "snap2", "", "b")
	must(t, writeState(filepath.Join(dir, "snap1"), mutable{Record: 7, Also: []string{"x", "b"}}))
	must(t, writeState(filepath.Join(dir, "snap2"), mutable{Record: 7, Also: []string{"x", "a"}}))
	s = open(t, dir, nil)
	for _, name := range []string{"a", "b", "x"} {
		if got, err := s.Find("", name); err != nil || got.ID != "snap2" {
			t.Errorf("%s: %s, %v", name, got.ID, err)
		}
	}
}

// TestNobodyWaitsForNamesToBeWritten: while the disk takes its time for the names of an owner's snapshots, all that
// there are can be listed, found and read, and another owner's get names; the same owner's wait their turn, and
// no name is two snapshots'.
func TestNobodyWaitsForNamesToBeWritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	make1(t, s, "snap1", "tok-a", "t")
	make1(t, s, "snap2", "tok-a", "u")
	make1(t, s, "snap3", "tok-b", "v")
	writes, goOn := make(chan string), make(chan struct{})
	s.put = func(of string, state mutable) error {
		if filepath.Base(of) != "snap3" {
			writes <- filepath.Base(of)
			<-goOn
		}
		return writeState(of, state)
	}
	named := make(chan error, 2)
	go func() { _, err := s.Name("tok-a", "snap2", []string{"t"}); named <- err }()
	if of := <-writes; of != "snap1" { // which loses the name
		t.Fatalf("INCONCLUSIVE: %s is written first", of)
	}
	if got := s.List(); len(got) != 3 {
		t.Errorf("%+v", got)
	}
	if got, err := s.Find("tok-a", "t"); err != nil || got.ID != "snap2" {
		t.Errorf("the name leads to %s, %v", got.ID, err)
	}
	lease, err := s.Lease(t.Context(), "tok-a", "snap1")
	must(t, err)
	lease.Release()
	if got, err := s.Name("tok-b", "snap3", []string{"w"}); err != nil || !slices.Equal(got.Also, []string{"w"}) {
		t.Errorf("another owner's: %+v, %v", got, err)
	}
	go func() { _, err := s.Name("tok-a", "snap1", []string{"t"}); named <- err }()
	for _, of := range []string{"snap2", "snap2", "snap1"} { // the first's own, and then the second's two
		goOn <- struct{}{}
		if got := <-writes; got != of {
			t.Errorf("%s is written, and not %s", got, of)
		}
	}
	goOn <- struct{}{}
	must(t, errors.Join(<-named, <-named))
	for range 2 {
		for ref, id := range map[string]string{"t": "snap1", "u": "snap2", "w": "snap3"} {
			owner := "tok-a"
			if ref == "w" {
				owner = "tok-b"
			}
			if got, err := s.Find(owner, ref); err != nil || got.ID != id {
				t.Errorf("%s leads to %s, %v", ref, got.ID, err)
			}
		}
		s = open(t, dir, nil)
	}
}

// TestNamesThatCannotBeWritten are not had, though others may have lost them.
func TestNamesThatCannotBeWritten(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	make1(t, s, "snap1", "", "t")
	broken := errors.New("the disk is full")
	s.put = func(string, mutable) error { return broken }
	if _, err := s.Name("", "snap1", []string{"u"}); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := s.Unname("", "snap1", []string{"t"}); !errors.Is(err, broken) {
		t.Error(err)
	}
	if got, err := s.Look("", "snap1"); err != nil || got.Name != "t" || len(got.Also) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestANameThatIsNotGivenStaysWhereItIs: what another snapshot has lost for a name that can't be written it has again,
// now and after a restart.
func TestANameThatIsNotGivenStaysWhereItIs(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	make1(t, s, "snap1", "", "t")
	make1(t, s, "snap2", "", "u")
	if _, err := s.Name("", "snap2", []string{"v"}); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is full")
	s.put = func(of string, state mutable) error {
		if filepath.Base(of) == "snap1" {
			return broken
		}
		return writeState(of, state)
	}
	if _, err := s.Name("", "snap1", []string{"u", "v"}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	for _, when := range []string{"now", "after a restart"} {
		for _, name := range []string{"u", "v"} {
			if got, err := s.Find("", name); err != nil || got.ID != "snap2" {
				t.Errorf("%s %s leads to %q, %v", when, name, got.ID, err)
			}
		}
		s = open(t, dir, nil)
	}
}

// TestNamesAreCountedFirst: more names than a snapshot may have are refused before each is looked at under
// the lock that all owners' snapshots share.
func TestNamesAreCountedFirst(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	make1(t, s, "snap1", "tok-a", "t")
	names := make([]string, 80_000)
	for i := range names {
		names[i] = fmt.Sprintf("t:%06d", i)
	}
	for what, do := range map[string]func(names []string) error{
		"given": func(names []string) error { _, err := s.Name("tok-a", "snap1", names); return err },
		"taken": func(names []string) error { _, err := s.Unname("tok-a", "snap1", names); return err },
		"asked": func(names []string) error { return s.CheckName("tok-a", "snap1", names) },
	} {
		must(t, do(names[:maxNames])) // the control
		s.mu.Lock()                   // whoever waits for it has looked at none
		err := do(names)
		s.mu.Unlock()
		if !errors.Is(err, fault.ErrExhausted) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNamesOfASnapshotThatIsRemoved: whoever names a snapshot while another removes it is told that it is gone, or has
// named it; and whoever comes after finds the store as before.
func TestNamesOfASnapshotThatIsRemoved(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	make1(t, s, "snap1", "tok-a", "t")
	make1(t, s, "snap2", "tok-a", "u")
	s.put = func(string, mutable) error { return nil } // the moment counts, and not the disk
	const others = 10_000                              // so that to find one takes its time, and whoever removes waits for that
	for i := range others {
		s.known[fmt.Sprint("other", i)] = &keptSnapshot{manifest: Manifest{ID: fmt.Sprint("other", i), Owner: "tok-b"}}
	}
	named := make(chan error, 1)
	go func() {
		var unexpected error
		for i := range 50 {
			if _, err := s.Name("tok-a", "t", []string{fmt.Sprint("v", i%2)}); err != nil && !errors.Is(err, fault.ErrNotFound) {
				unexpected = err
			}
			if _, err := s.Unname("tok-a", "t", []string{"v0", "v1"}); err != nil && !errors.Is(err, fault.ErrNotFound) {
				unexpected = err
			}
		}
		named <- unexpected
	}()
	for {
		select {
		case err := <-named:
			must(t, err)
			if got := s.List(); len(got) != 2+others {
				t.Errorf("there are %d", len(got))
			}
			return
		default:
		}
		k, _, err := s.forgetSnapshot("tok-a", "snap1")
		must(t, err)
		s.mu.Lock() // it is there again
		delete(s.drafts, "snap1")
		s.known["snap1"] = k
		s.mu.Unlock()
	}
}
