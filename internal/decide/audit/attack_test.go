package audit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// A tombstone that nobody wrote by an erasure is found, whatever it says of itself.
func TestAForgedTombstoneIsFound(t *testing.T) {
	for name, stone := range map[string]string{
		"with the number of another": `{"seq":0,"of":"OF","erased":"2026-01-01T00:00:00Z"}`,
		"from the future":            `{"seq":1,"of":"OF","erased":"2999-01-01T00:00:00Z"}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir, Options{})
			add(t, l, Record{User: "alice"})
			add(t, l, Record{User: "bob"})
			first := uint64(0)
			_, err := l.Erase(t.Context(), EraseAsk{Record: &first, By: "dpo"})
			must(t, err)
			must(t, l.Close())
			path := filepath.Join(dir, personalName(0))
			entries, err := readPersonal(path)
			must(t, err)
			text, err := os.ReadFile(path)
			must(t, err)
			lines := strings.SplitAfter(string(text), "\n")
			lines[1] = strings.Replace(stone, "OF", entries[1].Of, 1) + "\n"
			must(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
			if v := verify(t, dir, VerifyOptions{}); v.Sound || *v.Problems[0].Record != 1 || v.Erased != 1 {
				t.Errorf("%+v", v)
			}
		})
	}
}

// What is elsewhere can only hold the record of an erasure that came before it, and
// then nobody says that there is one.
func TestAnErasureWhoseRecordIsElsewhereIsNotCalledRecorded(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: 1_000})
	for range 20 {
		add(t, l, Record{Kind: KindPackage, User: "alice", Reason: strings.Repeat("x", 200)})
	}
	report, err := l.Seal(t.Context(), SealBefore{Record: 10}, "")
	must(t, err)
	must(t, l.Close())
	forge := func(first uint64) {
		path := filepath.Join(dir, personalName(first))
		entries, err := readPersonal(path)
		must(t, err)
		var text []byte
		for i, e := range entries {
			if i == 0 {
				e = personalEntry{Seq: e.Seq, Of: e.Of, Erased: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			}
			one, err := canonical(e)
			must(t, err)
			text = append(text, one...)
		}
		must(t, os.WriteFile(path, text, 0o600))
	}
	away := report.Segments[1]
	must(t, os.Remove(filepath.Join(dir, away.File)))
	forge(report.Segments[0].First)
	if v := verify(t, dir, VerifyOptions{}); !v.Sound || v.Erased != 0 || v.ErasedUnproved != 1 || !strings.Contains(strings.Join(v.CannotExclude, " "), "can't be told whether a record") {
		t.Errorf("before what is elsewhere: %+v", v)
	}
	forge(away.First + away.Records)
	if v := verify(t, dir, VerifyOptions{}); v.Sound || *v.Problems[0].Record != away.First+away.Records {
		t.Errorf("after what is elsewhere: %+v", v)
	}
}

func TestAKeptCheckpointThatIsTornIsNotPassedOverInSilence(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	var kept []byte
	for range 2 {
		add(t, l, Record{})
		must(t, l.advance())
		_, n := l.Checkpoint()
		kept = append(append(kept, n...), '\n')
	}
	must(t, l.Close())
	if v := verify(t, dir, VerifyOptions{Kept: kept[:len(kept)-1]}); len(v.Kept) != 2 {
		t.Errorf("without the empty line after the last: %+v", v)
	}
	if v, err := Verify(t.Context(), dir, VerifyOptions{Kept: kept[:len(kept)-20]}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("with the last torn: %+v, %v", v, err)
	}
}

// The tree is lost after a crash that came when records of another segment were not
// covered yet.
func TestATreeIsMadeAgainWhereTheLastCheckpointEndsInTheMiddleOfASegment(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: 3_000, CheckpointEvery: time.Hour})
	add(t, l, sample)
	must(t, l.advance())
	for range 20 {
		add(t, l, sample)
	}
	crashed := t.TempDir()
	must(t, os.CopyFS(crashed, os.DirFS(dir)))
	must(t, os.Chmod(filepath.Join(crashed, keyName), 0o600))
	if n := len(segmentFiles(t, crashed)); n < 2 {
		t.Fatalf("%d segments", n)
	}
	must(t, os.Remove(filepath.Join(crashed, treeName)))
	must(t, open(t, crashed, Options{}).Close())
	if v := verify(t, crashed, VerifyOptions{}); !v.Sound || v.Covered != 21 {
		t.Errorf("%+v", v)
	}
}

func TestAnErasureLeavesTheFingerprint(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	add(t, l, Record{User: "alice", Reason: "x"})
	before := collect(t, l, Filter{})[0]
	first := uint64(0)
	_, err := l.Erase(t.Context(), EraseAsk{Record: &first})
	must(t, err)
	if after := collect(t, l, Filter{})[0]; !after.Erased || Fingerprint(after) != Fingerprint(before) {
		t.Errorf("an export that stands at a record that was erased since is of another log: %+v", after)
	}
}

func TestChangedHashesBesideASealedSegmentAreFound(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: 3_000})
	for range 30 {
		add(t, l, sample)
	}
	_, err := l.Seal(t.Context(), SealBefore{Record: 20}, "")
	must(t, err)
	must(t, l.Close())
	flip(t, filepath.Join(dir, leavesName(0)), 40)
	if v := verify(t, dir, VerifyOptions{}); v.Sound || v.Problems[0].File != leavesName(0) {
		t.Errorf("%+v", v)
	}
}

// A holder of the key that was replaced can't go on in its name.
func TestAReplacedKeySignsNothingAfterwards(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	add(t, l, Record{})
	must(t, l.advance())
	stolen := l.follower.key
	_, err := l.RotateKey("alice", "it leaked")
	must(t, err)
	must(t, l.Close())
	if v := verify(t, dir, VerifyOptions{}); !v.Sound {
		t.Fatalf("%+v", v)
	}
	ring, err := checkpoint.NewKeyring(l.PublicKeys()[1])
	must(t, err)
	last := l.follower.last
	forged, err := checkpoint.Checkpoint{Origin: last.Origin, Size: last.Size, Root: last.Root, Time: last.Time}.Sign(stolen)
	must(t, err)
	appendBytes(t, filepath.Join(dir, checkpointsName), string(forged)+"\n")
	if v := verify(t, dir, VerifyOptions{Keys: &ring}); v.Sound || !strings.Contains(v.Problems[0].What, "replaced") {
		t.Errorf("%+v", v)
	}
	if v := verify(t, dir, VerifyOptions{Keys: &ring, Kept: forged}); v.Sound {
		t.Errorf("%+v", v)
	}
}

// A new key that can't be put in its place signs nothing until it is there: else the
// next start would not have it.
func TestANewKeyThatCannotBeInstalledWaits(t *testing.T) {
	for _, what := range []string{PublicKeysName, keyName} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			d := &failingDisk{files: []string{"/" + what, "/" + what + ".tmp"}}
			l, err := Open(dir, Options{disk: d, CheckpointEvery: time.Hour})
			must(t, err)
			add(t, l, Record{})
			must(t, l.advance())
			d.arm("", 1, 1_000, failure{err: unix.ENOSPC})
			if _, err := l.RotateKey("alice", ""); err == nil {
				t.Fatal("the key was replaced on a full disk")
			}
			for range 60 { // more checkpoints than a start looks back over
				add(t, l, Record{})
				_ = l.advance()
			}
			crashed := t.TempDir()
			must(t, os.CopyFS(crashed, os.DirFS(dir)))
			for _, name := range []string{keyName, keyName + nextKey} {
				must(t, os.Chmod(filepath.Join(crashed, name), 0o600))
			}
			again, err := Open(crashed, Options{})
			must(t, err)
			if got := again.PublicKeys(); len(got) != 2 || again.follower.key.Public() != got[1] {
				t.Errorf("after the next start the key is %s of %q", again.follower.key.Public(), got)
			}
			must(t, again.Close())
			if v := verify(t, crashed, VerifyOptions{}); !v.Sound {
				t.Errorf("after a crash: %+v", v)
			}
			d.arm("", 0, 0, failure{})
			add(t, l, Record{})
			must(t, l.Close())
			if v := verify(t, dir, VerifyOptions{}); !v.Sound || v.Covered != v.Records {
				t.Errorf("when the disk had room again: %+v", v)
			}
		})
	}
}

// A crash between the erasing and the record of it: whoever took the data learns of
// it all the same.
func TestAnErasureThatACrashInterruptedIsFinished(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	add(t, l, Record{User: "alice"})
	_, err := l.Append(t.Context(), Record{
		Kind: KindLog, Outcome: Started, Reason: "Personal data of record 0 are to be erased.",
		Detail: map[string]string{"event": "erase", "records": "0"},
	})
	must(t, err)
	must(t, l.Close())
	for range 2 {
		l = open(t, dir, Options{})
		add(t, l, Record{})
		must(t, l.Close())
	}
	r, err := OpenReader(dir)
	must(t, err)
	erased := 0
	for got, err := range r.Records(t.Context(), Filter{}) {
		must(t, err)
		if got.Seq == 0 && (!got.Erased || got.User != "") {
			t.Errorf("the data are still there: %+v", got)
		}
		if got.Kind == KindLog && got.Outcome == Erased && got.Detail["records"] == "0" {
			erased++
		}
	}
	if erased != 1 {
		t.Errorf("%d records of the deed", erased)
	}
}
