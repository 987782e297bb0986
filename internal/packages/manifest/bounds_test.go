package manifest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// deep is a project whose every directory has the same two, for some levels.
type deep struct{ levels int }

func (d deep) Read(string) ([]byte, error) { return nil, nil }

func (d deep) Folders(name string) (dirs, links []string, err error) {
	if name == "." {
		return []string{"a"}, nil, nil
	}
	if strings.Count(name, "/")+1 >= d.levels {
		return nil, nil, nil
	}
	return []string{"a"}, nil, nil
}

func lower(name string) (string, bool) { return strings.ToLower(name), name != "" }

// within fails a test that does not end before the run of all tests is given up: each of these took hours. How many seconds they take
// is a matter of what else the machine does.
func within(t *testing.T, work func()) {
	t.Helper()
	ctx, cancel := t.Context(), func() {}
	if deadline, is := t.Deadline(); is {
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-10*time.Second))
	}
	defer cancel()
	ended := make(chan struct{})
	go func() { defer close(ended); work() }()
	select {
	case <-ended:
	case <-ctx.Done():
		t.Fatal("it goes on and on")
	}
}

// TestPatternsTakeBoundedWork: whoever writes a project's patterns decides neither how long they are followed nor that
// members are left unread.
func TestPatternsTakeBoundedWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patterns []string
		members  int // -1: an error
	}{
		"the control":                  {[]string{"**/a", "!a/a"}, 60},
		"taken away before":            {[]string{"!a/a", "**/a"}, 60},
		"taken away, led to again":     {[]string{"**/a", "!a/a", "a/[a]"}, 60},
		"taken away, never back":       {[]string{"**/a", "!a/?", "a/a"}, 60},
		"a hidden one, taken away":     {[]string{".b/c", "!.b/c"}, 0},
		"many **":                      {[]string{"**", "!" + strings.Repeat("**/a/", 25) + "x"}, 61},
		"many ** that lead":            {[]string{strings.Repeat("**/a/", 25) + "**"}, 61},
		"** upon **":                   {[]string{strings.Repeat("**/", 100_000) + "a"}, 61},
		"alternatives of alternatives": {[]string{strings.Repeat("{a,a}", 40) + "x"}, -1},
		"too many parts":               {[]string{strings.Repeat("a/", 1000)}, -1},
		"too many patterns":            {make([]string, 100_000), -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, func() {
				found, err := NewWants(deep{60}, lower).Members(Text{File: "f"}, c.patterns)
				if got := len(found); c.members < 0 != (err != nil) || err == nil && got != c.members {
					t.Errorf("%d members, %v", got, err)
				}
			})
		})
	}
}

// wide is a project with more directories than are looked at.
type wide struct{ deep }

func (wide) Folders(name string) (all, _ []string, _ error) {
	if name == "." {
		for i := range mostFolders + 1 {
			all = append(all, fmt.Sprint("d", i))
		}
	}
	return all, nil, nil
}

// TestMembersThatAreNotReadAreAnError, since the names of these would be taken for a registry's.
func TestMembersThatAreNotReadAreAnError(t *testing.T) {
	t.Parallel()
	if found, err := NewWants(wide{}, lower).Members(Text{File: "f"}, []string{"*"}); err == nil {
		t.Errorf("%d members are all that there are", len(found))
	}
}

// TestWhatIsNotedIsBounded: neither many lines nor large texts take time that grows with their square.
func TestWhatIsNotedIsBounded(t *testing.T) {
	t.Parallel()
	within(t, func() {
		w := NewWants(deep{}, lower)
		for i := range 400_000 {
			w.LeaveOut("f", i, "-", "it is odd")
		}
		if _, err := w.Roots(); err == nil || len(w.LeftOut()) > maxLeftOut+1 {
			t.Errorf("%d lines: %v", len(w.LeftOut()), err)
		}
		w = NewWants(deep{}, lower)
		for i := range 400_000 {
			w.Add(fmt.Sprint("p", i), "f", i)
			w.Add("p", "f", i)
		}
		if _, err := w.Roots(); err == nil || len(w.roots) > maxRoots+1 {
			t.Errorf("%d roots: %v", len(w.roots), err)
		}
	})
	within(t, func() {
		text := Text{Data: []byte(strings.Repeat("x\n", 1<<20)), sought: new(int)}
		for range 400_000 {
			text.LineOf("x\ny")
		}
		text = Text{Data: []byte(strings.Repeat("a", 1<<20)), sought: new(int)}
		for range 400_000 {
			text.LineOf("a")
		}
		if n := (Text{Data: []byte("a\nb\n"), sought: new(int)}).LineOf("b"); n != 2 {
			t.Errorf("line %d", n)
		}
	})
}

// TestAlternativesTakeBoundedWork: braces in one pattern, and in many that take away what others lead to.
func TestAlternativesTakeBoundedWork(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]string{"!{" + strings.Repeat("a,", 900) + "a}"}, 900)
	for name, patterns := range map[string][]string{"one": {strings.Repeat("{a}", 300_000)}, "many": append(many, "b")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, func() {
				if _, err := NewWants(deep{60}, lower).Members(Text{File: "f"}, patterns); err == nil {
					t.Error("all of them were followed")
				}
			})
		})
	}
}

// counted counts how often a project's files are read.
type counted struct {
	deep
	reads map[string]int
}

func (c counted) Read(name string) ([]byte, error) {
	c.reads[name]++
	return nil, nil
}

// TestAFileIsLookedForOnce: whoever writes many manifests has not as many files read again.
func TestAFileIsLookedForOnce(t *testing.T) {
	t.Parallel()
	files := counted{reads: map[string]int{}}
	w := NewWants(files, lower)
	for range 1_000 {
		if w.HasAny("a.lock", "b.lock") {
			t.Fatal("it is there")
		}
	}
	if files.reads["a.lock"] != 1 || files.reads["b.lock"] != 1 {
		t.Errorf("%v", files.reads)
	}
}

// TestManyReferencesToACatalogAreNoFault, nor are they what was left out: large workspaces have more than are told.
func TestManyReferencesToACatalogAreNoFault(t *testing.T) {
	t.Parallel()
	w := NewWants(deep{}, lower)
	w.Define("here")
	for i := range maxLeftOut + 2 {
		w.Refer("here", "package.json", i, "a catalog:", "none has it")
	}
	if _, err := w.Roots(); err != nil || len(w.LeftOut()) > 0 {
		t.Errorf("%v, %d left out", err, len(w.LeftOut()))
	}
	for i := range maxLeftOut + 2 {
		w.Refer("nowhere", "package.json", i, "a catalog:", "none has it")
	}
	if _, err := w.Roots(); err == nil {
		t.Error("more is left out than is told")
	}
}

// TestMoreKeptNamesThanAreCountedAreRefused: one that is forgotten would be a root.
func TestMoreKeptNamesThanAreCountedAreRefused(t *testing.T) {
	t.Parallel()
	w := NewWants(deep{}, lower)
	for i := range maxOwn + 2 {
		w.KeepBy(strconv.Itoa(i), "it is elsewhere")
	}
	if _, err := w.Roots(); err == nil {
		t.Error("a name is forgotten")
	}
}
