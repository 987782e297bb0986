package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ownedLog has records of two runs in several segments, some with more that is personal.
func ownedLog(t *testing.T, dir string) *FileLog {
	t.Helper()
	l := open(t, dir, Options{SegmentBytes: 3_000})
	for i := range 40 {
		run := []string{"a", "b"}[i%2]
		r := Record{Kind: KindPackage, Outcome: Blocked, Run: run, User: "alice-" + run, Token: "token-" + run, Package: "p"}
		if i%5 == 0 {
			r.Task = "the task of " + run
		}
		add(t, l, r)
	}
	return l
}

func personalFiles(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"+personalSuffix))
	must(t, err)
	if len(paths) < 3 {
		t.Fatalf("the log has %d files of personal data; the test wants several", len(paths))
	}
	return paths
}

// TestWhoseRunItIsIsKeptOnce: each record of a run says whose it is, a filter finds them, and a
// segment has that once for each run.
func TestWhoseRunItIsIsKeptOnce(t *testing.T) {
	dir := t.TempDir()
	l := ownedLog(t, dir)
	for name, f := range map[string]Filter{"by token": {Token: "token-a"}, "by user": {User: "alice-a"}, "by both": {User: "alice-a", Token: "token-a"}} {
		got := collect(t, l, f)
		if len(got) != 20 || slices.ContainsFunc(got, func(r Record) bool { return r.Run != "a" || r.User != "alice-a" || r.Token != "token-a" || r.Erased }) {
			t.Errorf("%s: %d records: %+v", name, len(got), got)
		}
	}
	if got := collect(t, l, Filter{User: "alice-a", Token: "token-b"}); len(got) != 0 {
		t.Errorf("of nobody: %+v", got)
	}
	for _, seq := range []uint64{0, 17, 38} {
		if got := collect(t, l, Filter{Seqs: []uint64{seq}}); len(got) != 1 || got[0].Token == "" || (got[0].Task != "") != (seq%5 == 0) {
			t.Errorf("record %d by itself: %+v", seq, got)
		}
	}
	must(t, l.Close())
	for _, path := range personalFiles(t, dir) {
		text, err := os.ReadFile(path)
		must(t, err)
		if n := bytes.Count(text, []byte(`"shared":true`)); n > 2 {
			t.Errorf("%s has whose runs they are %d times, want once for each at most", path, n)
		}
	}
	again := open(t, dir, Options{})
	defer again.Close()
	add(t, again, Record{Kind: KindPackage, Run: "a", User: "alice-a", Token: "token-a"}) // in a file that is there
	if got := collect(t, again, Filter{Token: "token-a"}); len(got) != 21 {
		t.Errorf("after a restart: %d records", len(got))
	}
}

// TestErasingARunErasesWhoseItIs in every segment, and in no other run; what comes later has
// it anew, and nothing brings the old back.
func TestErasingARunErasesWhoseItIs(t *testing.T) {
	dir := t.TempDir()
	l := ownedLog(t, dir)
	late, err := newRequest(Record{Kind: KindPackage, Run: "a", User: "alice-a", Token: "token-a"}, &l.owners)
	must(t, err)
	must(t, l.advance())
	_, kept := l.Checkpoint()
	report, err := l.Erase(t.Context(), EraseAsk{Run: "a", By: "dpo"})
	must(t, err)
	if len(report.Records) == 0 || len(report.Records) > 20 {
		t.Errorf("erased %d", report.Records)
	}
	must(t, l.enqueue(late)) // it was encoded before
	<-late.done
	if !errors.Is(late.result, errOwnerErased) {
		t.Errorf("a record that commits to what is erased: %v", late.result)
	}
	add(t, l, Record{Kind: KindPackage, Run: "a", User: "later", Token: "token-later"})
	add(t, l, Record{Kind: KindPackage, Run: "b", User: "alice-b", Token: "token-b"})
	gone, left := 0, 0
	for _, r := range collect(t, l, Filter{Kinds: []Kind{KindPackage}}) {
		switch {
		case r.Run == "a" && r.Seq < 40 && r.Erased && r.User == "" && r.Token == "" && r.Task == "":
			gone++
		case r.Run == "b" && r.User == "alice-b" && r.Token == "token-b" && !r.Erased, r.User == "later" && r.Token == "token-later" && !r.Erased:
			left++
		default:
			t.Errorf("record %d: %+v", r.Seq, r)
		}
	}
	if gone != 20 || left != 22 {
		t.Errorf("%d are erased, %d are left", gone, left)
	}
	one := uint64(43) // of run b
	if _, err := l.Erase(t.Context(), EraseAsk{Record: &one}); err == nil || !strings.Contains(err.Error(), "--run") {
		t.Errorf("erasing of one record what its run shares: %v", err)
	}
	must(t, l.Close())
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		for _, secret := range []string{"alice-a", "token-a", "the task of a"} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s still has %q", e.Name(), secret)
			}
		}
	}
	if v := verify(t, dir, VerifyOptions{Kept: kept}); !v.Sound || v.Erased < 20 {
		t.Errorf("%+v", v)
	}
}

// TestWhoseRunItIsCantBeTouched: a change of it, its loss, and an erasure that is not on record
// are found; the log as it was is the control.
func TestWhoseRunItIsCantBeTouched(t *testing.T) {
	for name, c := range map[string]struct {
		change func(line string) string
		says   string // "": nothing
	}{
		"as it was": {func(s string) string { return s }, ""},
		"changed":   {func(s string) string { return strings.Replace(s, "alice", "mallo", 1) }, "were changed"},
		"removed":   {func(string) string { return "" }, "are missing"},
		"moved":     {func(s string) string { return strings.Replace(s, `"seq":1,`, `"seq":3,`, 1) }, "were changed"},
		"of another run, so that no erasure finds it": {func(s string) string { return strings.Replace(s, `"agent_run_id":"b"`, `"agent_run_id":"a"`, 1) }, "were changed"},
		"of no run":           {func(s string) string { return strings.Replace(s, `"agent_run_id":"b",`, ``, 1) }, "were changed"},
		"as one record's own": {func(s string) string { return strings.Replace(s, `"shared":true,`, ``, 1) }, "were changed"},
		"erased without record": {func(s string) string {
			return s[:strings.Index(s, `,"salt"`)] + `,"erased":"2026-01-01T00:00:00Z"}` + "\n"
		}, "no record says so"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir, Options{})
			for range 3 {
				add(t, l, Record{Kind: KindPackage, Run: "a", User: "bob"})
				add(t, l, Record{Kind: KindPackage, Run: "b", User: "alice"})
			}
			must(t, l.Close())
			path := filepath.Join(dir, personalName(0))
			text, err := os.ReadFile(path)
			must(t, err)
			changed := ""
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, "alice") {
					line = c.change(line)
				}
				changed += line
			}
			must(t, os.WriteFile(path, []byte(changed), 0o600))
			v := verify(t, dir, VerifyOptions{})
			said := ""
			for _, p := range v.Problems {
				said += p.What
			}
			if v.Sound != (c.says == "") || !strings.Contains(said, c.says) {
				t.Errorf("sound: %v; it says %q", v.Sound, said)
			}
		})
	}
}

// TestOwnerKeys: a run stays its token's when the token is erased, and nobody else's.
func TestOwnerKeys(t *testing.T) {
	keys, others := NewOwnerKeys([]byte("one")), NewOwnerKeys([]byte("another"))
	known := Record{Run: "r", Token: "t", Detail: map[string]string{DetailOwnerKey: keys.Of("r", "t")}}
	erased := Record{Run: "r", Detail: known.Detail}
	host := Record{Run: "r"}
	old := Record{Run: "r", Detail: map[string]string{"token": "t"}}
	for _, c := range []struct {
		what  string
		began Record
		token string
		owns  bool
	}{
		{"its own", known, "t", true},
		{"another's", known, "u", false},
		{"a token's, asked by the host", known, "", false},
		{"its own, erased", erased, "t", true},
		{"another's, erased", erased, "u", false},
		{"a token's, erased, asked by the host", erased, "", false},
		{"the host's", host, "", true},
		{"the host's, asked by a token", host, "t", false},
		{"its own, of an earlier version", old, "t", true},
		{"another's, of an earlier version", old, "u", false},
	} {
		if got := keys.Owns(c.began, c.token); got != c.owns {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	if others.Owns(erased, "t") || keys.Of("s", "t") == keys.Of("r", "t") {
		t.Error("a key is the same without the secret, or for another run")
	}
	if key := NewOwnerKeys(nil).Of("r", "t"); key != "" {
		t.Errorf("without a secret there is the key %q, which anybody can make", key)
	}
}

// TestAReaderDoesNotBringBackWhatWasErased: one that had the file of personal data in mind goes
// on after an erasure; what it remembers must not be told to others, nor to itself.
func TestAReaderDoesNotBringBackWhatWasErased(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	defer l.Close()
	for _, run := range []string{"a", "b", "a"} {
		add(t, l, Record{Kind: KindPackage, Run: run, User: "alice-" + run, Token: "token-" + run})
	}
	owners := map[string]string{}
	for r, err := range l.Records(t.Context(), Filter{Kinds: []Kind{KindPackage}}) {
		must(t, err)
		if r.Seq == 0 {
			_, err := l.Erase(t.Context(), EraseAsk{Run: "b", By: "dpo"})
			must(t, err)
		}
		owners[r.Run] = r.User
	}
	if owners["a"] != "alice-a" || owners["b"] != "" {
		t.Errorf("the reader that was under way: %v", owners)
	}
	for _, r := range collect(t, l, Filter{Kinds: []Kind{KindPackage}}) {
		if erased := r.Run == "b"; r.Erased != erased || (r.User == "") != erased || (r.Token == "") != erased {
			t.Errorf("a later reader: %+v", r)
		}
	}
}

// TestErasureLeavesNothingOfARecordThatNeverCameToBe: a crash has left its personal data behind
// those of a segment, and the next record begins another one.
func TestErasureLeavesNothingOfARecordThatNeverCameToBe(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	add(t, l, Record{Kind: KindPackage, Run: "a", User: "alice"})
	must(t, l.Close())
	path := filepath.Join(dir, personalName(0))
	text, err := os.ReadFile(path)
	must(t, err)
	left := strings.NewReplacer(`"seq":0`, `"seq":1`, "alice", "alice-who-was-not-to-be").Replace(string(text))
	must(t, os.WriteFile(path, append(text, left...), 0o600))
	l = open(t, dir, Options{SegmentBytes: 1})
	add(t, l, Record{Kind: KindPackage, Run: "a", User: "alice"})
	if got := collect(t, l, Filter{User: "alice"}); len(got) != 2 {
		t.Errorf("%d records", len(got))
	}
	_, err = l.Erase(t.Context(), EraseAsk{Run: "a", By: "dpo"})
	must(t, err)
	must(t, l.Close())
	for _, path := range []string{path, filepath.Join(dir, personalName(1))} {
		text, err := os.ReadFile(path)
		must(t, err)
		if bytes.Contains(text, []byte("alice")) || len(text) == 0 {
			t.Errorf("%s: %s", path, text)
		}
	}
	if v := verify(t, dir, VerifyOptions{}); !v.Sound || v.Erased != 2 {
		t.Errorf("%+v", v)
	}
}
