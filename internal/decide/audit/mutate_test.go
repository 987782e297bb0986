package audit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
)

// writeLog makes a closed log of n records in several segments, with personal
// data in every fifth, and returns its lines.
func writeLog(t *testing.T, dir string, n int) [][]byte {
	t.Helper()
	l, err := Open(dir, Options{SegmentBytes: 6_000, CheckpointEvery: 5 * time.Millisecond})
	must(t, err)
	for i := range n {
		r := sample
		r.Size = int64(i)
		if i%5 == 0 {
			r.User, r.Task = fmt.Sprintf("user-%d", i), "count the widgets"
		}
		add(t, l, r)
	}
	must(t, l.Close())
	var lines [][]byte
	for _, name := range segmentFiles(t, dir) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		for l := range bytes.Lines(text) {
			lines = append(lines, bytes.Clone(l))
		}
	}
	if len(lines) != n {
		t.Fatalf("the log has %d lines, want %d", len(lines), n)
	}
	return lines
}

func segmentFiles(t *testing.T, dir string) []string {
	t.Helper()
	segments, err := listSegments(dir)
	must(t, err)
	var names []string
	for _, s := range segments {
		names = append(names, s.fileName())
	}
	return names
}

func verify(t *testing.T, dir string, options VerifyOptions) Verdict {
	t.Helper()
	v, err := Verify(t.Context(), dir, options)
	must(t, err)
	return v
}

func TestVerifyFindsEveryMutation(t *testing.T) {
	dir := t.TempDir()
	const records = 60
	lines := writeLog(t, dir, records)
	if v := verify(t, dir, VerifyOptions{}); !v.Sound || v.Records != records || v.Covered != records || v.Personal != records/5 {
		t.Fatalf("the log as it was written: %+v", v)
	}
	segments, err := listSegments(dir)
	must(t, err)
	tree, err := os.ReadFile(filepath.Join(dir, treeName))
	must(t, err)
	random := rand.New(rand.NewPCG(4, 2))
	kinds := []string{"edit", "delete", "insert", "swap", "duplicate"}
	for i := range mutations {
		kind := kinds[i%len(kinds)]
		changed, first := mutate(random, kind, lines)
		writeSegments(t, dir, segments, lines, changed)
		// Every other time the tree is gone: the checkpoints alone must find it.
		withTree := i%10 < 5
		if withTree {
			must(t, os.WriteFile(filepath.Join(dir, treeName), tree, 0o600))
		} else {
			must(t, os.RemoveAll(filepath.Join(dir, treeName)))
		}
		v := verify(t, dir, VerifyOptions{})
		if v.Sound || len(v.Problems) == 0 {
			t.Fatalf("mutation %d, %s of record %d, was not found", i, kind, first)
		}
		if withTree && (v.Problems[0].Record == nil || *v.Problems[0].Record != uint64(first)) {
			t.Fatalf("mutation %d, %s: the first bad record is %d, and verify says %+v", i, kind, first, v.Problems[0])
		}
	}
	writeSegments(t, dir, segments, lines, lines)
	if v := verify(t, dir, VerifyOptions{}); !v.Sound {
		t.Fatalf("the log as it was, at the end: %+v", v)
	}
}

// mutate changes one thing and returns the number of the first record that is
// not what it was.
func mutate(random *rand.Rand, kind string, lines [][]byte) (changed [][]byte, first int) {
	n := len(lines)
	i := random.IntN(n)
	before, after := lines[:i:i], lines[i+1:]
	switch kind {
	case "edit":
		line := bytes.Clone(lines[i])
		at := random.IntN(len(line))
		line[at] ^= byte(1 + random.IntN(255))
		return append(append(before, line), after...), i
	case "delete":
		return append(before, after...), i
	case "insert": // a record of another number, made to fit
		other := random.IntN(n)
		rest := bytes.TrimPrefix(lines[other], fmt.Appendf(nil, `{"seq":%d`, other))
		forged := append(fmt.Appendf(nil, `{"seq":%d`, i), rest...)
		if bytes.Equal(forged, lines[i]) {
			i++ // it is a duplicate
		}
		return append(append(before, forged), lines[min(i, len(before)):]...), i
	case "swap":
		j := (i + 1 + random.IntN(n-1)) % n
		changed = append([][]byte(nil), lines...)
		changed[i], changed[j] = changed[j], changed[i]
		return changed, min(i, j)
	default: // duplicate
		return append(append(before, lines[i], lines[i]), after...), i + 1
	}
}

// writeSegments writes the lines into the files in which they were: what is new
// stands where the line before it stands.
func writeSegments(t *testing.T, dir string, segments []segment, was, lines [][]byte) {
	t.Helper()
	contents := make([][]byte, len(segments))
	s := 0
	for i, l := range lines {
		same := i < len(was)
		for same && s+1 < len(segments) && uint64(i) >= segments[s+1].first {
			s++
		}
		contents[s] = append(contents[s], l...)
	}
	for i, s := range segments {
		path := filepath.Join(dir, segmentName(s.first))
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, contents[i]) {
			must(t, os.WriteFile(path, contents[i], 0o600))
		}
	}
}

func TestVerifyComparesWithAKeptCheckpoint(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, Options{})
	must(t, err)
	for range 7 {
		add(t, l, sample)
	}
	must(t, l.advance())
	_, kept := l.Checkpoint()
	for range 5 {
		add(t, l, sample)
	}
	must(t, l.Close())
	ring, err := checkpoint.NewKeyring(l.PublicKeys()[0])
	must(t, err)
	options := VerifyOptions{Keys: &ring, Kept: kept}
	if v := verify(t, dir, options); !v.Sound || len(v.Kept) != 1 || v.Kept[0].Size != 7 {
		t.Fatalf("a log that has only grown: %+v", v)
	}
	rewriteWithTheKey(t, dir, 3)
	if v := verify(t, dir, VerifyOptions{Keys: &ring}); !v.Sound {
		t.Fatalf("who holds the key can rewrite the log, and this test must do so: %+v", v.Problems)
	}
	if v := verify(t, dir, options); v.Sound {
		t.Error("the kept checkpoint did not find that the log was rewritten")
	}
	other, err := checkpoint.Generate("")
	must(t, err)
	stranger, err := checkpoint.NewKeyring(other.Public())
	must(t, err)
	if v := verify(t, dir, VerifyOptions{Keys: &stranger}); v.Sound {
		t.Error("a key that signed nothing of this log verified it")
	}
}

// rewriteWithTheKey makes the log anew with one record changed, as its holder can.
func rewriteWithTheKey(t *testing.T, dir string, change uint64) {
	t.Helper()
	anew := t.TempDir()
	key, err := os.ReadFile(filepath.Join(dir, keyName))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(anew, keyName), key, 0o600))
	old := open(t, dir, Options{})
	l, err := Open(anew, Options{})
	must(t, err)
	for _, r := range collect(t, old, Filter{}) {
		if r.Seq == change {
			r.Package = "innocent"
		}
		add(t, l, r)
	}
	must(t, l.Close())
	must(t, old.Close())
	must(t, os.RemoveAll(dir))
	must(t, os.CopyFS(dir, os.DirFS(anew)))
}

func TestACutLogIsFoundByAKeptCheckpointAlone(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, Options{})
	must(t, err)
	add(t, l, sample)
	must(t, l.Close())
	files := map[string][]byte{}
	for _, name := range []string{segmentName(0), checkpointsName, treeName} {
		files[name], err = os.ReadFile(filepath.Join(dir, name))
		must(t, err)
	}
	l, err = Open(dir, Options{})
	must(t, err)
	add(t, l, sample)
	must(t, l.Close())
	_, kept := l.Checkpoint()
	for name, text := range files { // back to what it was
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	if v := verify(t, dir, VerifyOptions{}); !v.Sound || len(v.CannotExclude) == 0 {
		t.Fatalf("the cut log, by itself: %+v", v)
	}
	v := verify(t, dir, VerifyOptions{Kept: kept})
	if v.Sound || v.Problems[0].Record == nil || *v.Problems[0].Record != 1 {
		t.Errorf("the kept checkpoint did not find that record 1 is missing: %+v", v)
	}
}
