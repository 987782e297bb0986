package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestTheTreeIsThatOfTheGoProject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(t, "leaves")
		var ours frontier
		var file []byte
		var theirs []tlog.Hash
		read := tlog.HashReaderFunc(func(at []int64) ([]tlog.Hash, error) {
			var hashes []tlog.Hash
			for _, i := range at {
				hashes = append(hashes, theirs[i])
			}
			return hashes, nil
		})
		for i := range n {
			leaf := []byte{byte(i), byte(i >> 8)}
			stored, err := tlog.StoredHashes(int64(i), leaf, read)
			if err != nil {
				t.Fatal(err)
			}
			theirs = append(theirs, stored...)
			file = ours.addLeaf(file, tlog.RecordHash(leaf))
		}
		root, err := tlog.TreeHash(int64(n), read)
		if err != nil || root != ours.rootHash() {
			t.Fatalf("the root of %d leaves differs (%v)", n, err)
		}
		if int64(len(file)) != treeBytes(int64(n)) {
			t.Fatalf("the file of %d leaves has %d bytes", n, len(file))
		}
		again, err := loadFrontier(bytes.NewReader(file), int64(n))
		if err != nil || again.rootHash() != root {
			t.Fatalf("the root of %d leaves differs after loading (%v)", n, err)
		}
	})
}

func TestSealedSegmentsAreReadAndProved(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, Options{SegmentBytes: 3_000})
	must(t, err)
	for range 30 {
		add(t, l, Record{Kind: KindPackage, Package: "requests", User: "alice", Reason: strings.Repeat("x", 200)})
	}
	want := collect(t, l, Filter{})
	report, err := l.Seal(t.Context(), SealBefore{Record: 20}, "alice")
	must(t, err)
	if len(report.Segments) < 2 || report.Segments[0].BytesAfter >= report.Segments[0].BytesBefore {
		t.Fatalf("sealed: %+v", report)
	}
	if again, err := l.Seal(t.Context(), SealBefore{Record: 20}, "alice"); err != nil || len(again.Segments) > 0 {
		t.Errorf("sealed again: %+v, %v", again, err)
	}
	if none, err := l.Seal(t.Context(), SealBefore{Time: time.Now().Add(-time.Hour)}, ""); err != nil || len(none.Segments) > 0 {
		t.Errorf("records of now are older than an hour: %+v, %v", none, err)
	}
	if diff := cmp.Diff(want, collect(t, l, Filter{})[:len(want)]); diff != "" {
		t.Errorf("the sealed log differs (-before +after):\n%s", diff)
	}
	must(t, l.Close())
	sealedRecords := report.Segments[len(report.Segments)-1].First + report.Segments[len(report.Segments)-1].Records
	if v := verify(t, dir, VerifyOptions{}); !v.Sound || v.Sealed != sealedRecords || v.Elsewhere != 0 {
		t.Errorf("%+v", v)
	}
	must(t, os.Remove(filepath.Join(dir, treeName))) // to be made again from hashes alone
	away := t.TempDir()
	must(t, os.Rename(filepath.Join(dir, report.Segments[0].File), filepath.Join(away, "x")))
	l = open(t, dir, Options{})
	if got := collect(t, l, Filter{}); got[0].Seq != report.Segments[0].Records {
		t.Errorf("the first record that is here is %d", got[0].Seq)
	}
	must(t, l.Close())
	if v := verify(t, dir, VerifyOptions{}); !v.Sound || v.Elsewhere != report.Segments[0].Records || v.Covered != v.Records {
		t.Errorf("%+v", v)
	}
	if _, err := Prove(dir, 0); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("the proof of a record that is elsewhere: %v", err)
	}
	if _, err := Prove(dir, sealedRecords-1); err != nil {
		t.Errorf("the proof of a sealed record: %v", err)
	}
	flip(t, filepath.Join(dir, leavesName(0)), 40)
	if v := verify(t, dir, VerifyOptions{}); v.Sound {
		t.Error("changed hashes of records that are elsewhere were not found")
	}
	flip(t, filepath.Join(dir, leavesName(0)), 40)
	must(t, os.Rename(filepath.Join(away, "x"), filepath.Join(dir, report.Segments[0].File)))
	flip(t, filepath.Join(dir, report.Segments[1].File), 60)
	if v := verify(t, dir, VerifyOptions{}); v.Sound || *v.Problems[0].Record < report.Segments[1].First {
		t.Errorf("a damaged sealed segment: %+v", v.Problems)
	}
}

func flip(t *testing.T, path string, at int) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	text[at] ^= 1
	must(t, os.WriteFile(path, text, 0o600))
}

func TestErasedDataAreGoneAndTheProofHolds(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: 2_000})
	for i := range 12 {
		run := []string{"a", "b"}[i%2]
		add(t, l, Record{Kind: KindSandbox, Run: run, User: "alice-" + run, Task: "the secret of " + run, Detail: map[string]string{"because": "private-" + run, "kept": "1"}})
	}
	must(t, l.advance())
	_, kept := l.Checkpoint()
	report, err := l.Erase(t.Context(), EraseAsk{Run: "a", Reason: "asked for", By: "dpo"})
	must(t, err)
	if want := []uint64{0, 2, 4, 6, 8, 10}; !slices.Equal(report.Records, want) {
		t.Errorf("erased %d, want %d", report.Records, want)
	}
	one := uint64(11)
	_, err = l.Erase(t.Context(), EraseAsk{Record: &one})
	must(t, err)
	if _, err := l.Erase(t.Context(), EraseAsk{Run: "a"}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("erasing again: %v", err)
	}
	add(t, l, Record{Kind: KindSandbox, Run: "a", User: "alice-again"}) // the file goes on
	for _, r := range collect(t, l, Filter{Kinds: []Kind{KindSandbox}}) {
		switch gone := r.Seq < 12 && (r.Run == "a" || r.Seq == one); {
		case gone && (!r.Erased || r.User != "" || r.Task != "" || r.Detail["because"] != "" || r.Detail["kept"] != "1"):
			t.Errorf("record %d was to be erased: %+v", r.Seq, r)
		case !gone && (r.Erased || r.User == ""):
			t.Errorf("record %d was not to be erased: %+v", r.Seq, r)
		}
	}
	must(t, l.Close())
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		for _, secret := range []string{"alice-a\"", "the secret of a", "private-a"} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s still has %q", e.Name(), secret)
			}
		}
	}
	if v := verify(t, dir, VerifyOptions{Kept: kept}); !v.Sound || v.Erased != 7 {
		t.Errorf("%+v", v)
	}
}

func TestPersonalDataThatWereTouchedAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(text string) string
		says   string
	}{
		"changed": {func(s string) string { return strings.Replace(s, "alice", "mallo", 1) }, "were changed"},
		"removed": {func(string) string { return "" }, "are missing"},
		"erased without record": {func(s string) string {
			return s[:strings.Index(s, `,"salt"`)] + `,"erased":"2026-01-01T00:00:00Z"}` + "\n"
		}, "no record says so"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir, Options{})
			add(t, l, Record{User: "alice"})
			must(t, l.Close())
			path := filepath.Join(dir, personalName(0))
			text, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path, []byte(c.change(string(text))), 0o600))
			v := verify(t, dir, VerifyOptions{})
			if v.Sound || *v.Problems[0].Record != 0 || !strings.Contains(v.Problems[0].What, c.says) || v.Covered != 1 {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	good, err := checkpoint.Generate("")
	must(t, err)
	zero := "PRIVATE+KEY+x+00000000+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		says string
	}{
		"world-readable": {string(good.Secret()), 0o644, "mode"},
		"group-readable": {string(good.Secret()), 0o640, "mode"},
		"all zero":       {zero, 0o600, "weak"},
		"short":          {"PRIVATE+KEY+x+00000000+AQAA", 0o600, "bytes"},
		"no key":         {"hello\n", 0o600, "no private key"},
		"empty":          {"", 0o600, "no private key"},
		"another hash":   {strings.Replace(string(good.Secret()), "+KEY+cofferdam", "+KEY+xofferdam", 1), 0o600, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, keyName), []byte(c.text), c.mode))
			must(t, os.Chmod(filepath.Join(dir, keyName), c.mode))
			l, err := Open(dir, Options{})
			if l != nil || err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Open gave %v, %v; want one sentence with %q", l, err, c.says)
			}
		})
	}
}

func TestAKeyThatIsMissingOrAnotherIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	add(t, l, Record{})
	must(t, l.Close())
	path := filepath.Join(dir, keyName)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %v (%v)", info.Mode(), err)
	}
	must(t, os.Remove(path))
	if l, err := Open(dir, Options{}); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("without its key the log opened: %v, %v", l, err)
	}
	other, err := checkpoint.Generate("")
	must(t, err)
	must(t, os.WriteFile(path, other.Secret(), 0o600))
	if l, err := Open(dir, Options{}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("with another key the log opened: %v, %v", l, err)
	}
}

func TestWhatEachKeyVerifiesAfterRotations(t *testing.T) {
	dir, keyFile := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	l := open(t, dir, Options{KeyFile: keyFile})
	for range 3 {
		add(t, l, Record{})
		must(t, l.advance())
		if _, err := l.RotateKey("alice", "monthly"); err != nil {
			t.Fatal(err)
		}
	}
	keys := l.PublicKeys()
	must(t, l.Close())
	l = open(t, dir, Options{KeyFile: keyFile})
	add(t, l, Record{})
	must(t, l.Close())
	if len(keys) != 4 {
		t.Fatalf("%d keys", len(keys))
	}
	for i, k := range keys {
		ring, err := checkpoint.NewKeyring(k)
		must(t, err)
		if v := verify(t, dir, VerifyOptions{Keys: &ring}); !v.Sound || len(v.Keys) != 4 {
			t.Errorf("with key %d: %+v", i, v)
		}
	}
	// A key that nobody vouched for is not trusted because it stands in a rotation.
	mallory, err := checkpoint.Generate(strings.SplitN(keys[0], "+", 2)[0])
	must(t, err)
	forged, err := checkpoint.Checkpoint{Origin: mallory.Name(), Size: 1, OldKey: keys[0], NewKey: mallory.Public()}.Sign(mallory)
	must(t, err)
	ring, err := checkpoint.NewKeyring(keys[0])
	must(t, err)
	if ring.Learn(forged) {
		t.Error("a rotation that the trusted key did not sign was believed")
	}
}

func TestProofs(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: 2_000})
	for range 23 {
		add(t, l, sample)
	}
	must(t, l.advance())
	ring, err := checkpoint.NewKeyring(l.PublicKeys()[0])
	must(t, err)
	for n := range uint64(23) {
		p, err := Prove(dir, n)
		must(t, err)
		back, err := ParseProof([]byte(p.Text()))
		must(t, err)
		if diff := cmp.Diff(p, back); diff != "" {
			t.Fatalf("the text of a proof reads as another:\n%s", diff)
		}
		if _, err := back.Check(ring); err != nil {
			t.Errorf("the proof of record %d: %v", n, err)
		}
		back.Record = strings.Replace(back.Record, "requests", "reqeusts", 1)
		if _, err := back.Check(ring); !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("the proof of another record %d: %v", n, err)
		}
	}
	if _, err := Prove(dir, 23); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("the proof of a record that is not there: %v", err)
	}
}

func TestATreeThatIsLostOrWrong(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: 2_000})
	for range 40 {
		add(t, l, sample)
	}
	must(t, l.Close())
	path := filepath.Join(dir, treeName)
	was, err := os.ReadFile(path)
	must(t, err)
	for name, change := range map[string]func() error{
		"lost":   func() error { return os.Remove(path) },
		"behind": func() error { return os.Truncate(path, 500) },
		"ahead":  func() error { return os.WriteFile(path, append(bytes.Clone(was), "garbage"...), 0o600) },
	} {
		must(t, change())
		must(t, open(t, dir, Options{}).Close())
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, was) {
			t.Errorf("%s: the tree was not made again as it was (%v)", name, err)
		}
	}
	for name, at := range map[string]int{"a record's hash": len(was) - 300, "the root's part": int(tlog.StoredHashIndex(5, 0)) * tlog.HashSize} {
		flip(t, path, at)
		if v := verify(t, dir, VerifyOptions{}); v.Sound || v.Problems[0].File != treeName {
			t.Errorf("%s was changed in the tree: %+v", name, v.Problems)
		}
		flip(t, path, at)
	}
	flip(t, path, int(tlog.StoredHashIndex(5, 0))*tlog.HashSize)
	if l, err := Open(dir, Options{}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a tree that disagrees was taken: %v, %v", l, err)
	}
	must(t, os.Remove(path))
	segment := filepath.Join(dir, segmentName(0))
	text, err := os.ReadFile(segment)
	must(t, err)
	must(t, os.WriteFile(segment, bytes.Replace(text, []byte("requests"), []byte("reqeusts"), 1), 0o600))
	if l, err := Open(dir, Options{}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("records that disagree with the checkpoint were taken: %v, %v", l, err)
	}
}

func TestALogFromBeforeTheTreeIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	old := `{"seq":0,"timestamp":"2026-01-01T00:00:00Z","kind":"sandbox","outcome":"started","agent_run_id":"r","user":"alice","task":"old"}` + "\n"
	must(t, os.WriteFile(filepath.Join(dir, segmentName(0)), []byte(old), 0o600))
	l := open(t, dir, Options{})
	add(t, l, Record{User: "bob"})
	got := collect(t, l, Filter{})
	if len(got) != 2 || got[0].User != "alice" || got[0].Task != "old" || got[1].User != "bob" {
		t.Errorf("%+v", got)
	}
	must(t, l.Close())
	if v := verify(t, dir, VerifyOptions{}); !v.Sound || v.Covered != 2 {
		t.Errorf("%+v", v)
	}
}

func TestASegmentIsBegunWhenTheLastIsOld(t *testing.T) {
	dir := t.TempDir()
	began := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var ahead atomic.Int64 // nanoseconds; the log's own goroutines read the clock, too
	options := Options{SegmentAge: 24 * time.Hour, Clock: clock.Plain(func() time.Time { return began.Add(time.Duration(ahead.Load())) })}
	l := open(t, dir, options)
	add(t, l, sample)
	ahead.Add(int64(23 * time.Hour))
	add(t, l, sample)
	must(t, l.Close())
	l = open(t, dir, options)
	ahead.Add(int64(time.Hour))
	add(t, l, sample)
	if names := segmentFiles(t, dir); !slices.Equal(names, []string{segmentName(0), segmentName(2)}) {
		t.Errorf("the segments are %v", names)
	}
	report, err := l.Seal(t.Context(), SealBefore{Time: options.Clock.Read().Now}, "")
	if err != nil || len(report.Segments) != 1 || report.Segments[0].Records != 2 {
		t.Errorf("sealed %+v (%v)", report, err)
	}
}
