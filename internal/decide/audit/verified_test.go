package audit_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestWhatIsReadIsWhatWasVerified: files that are exchanged after a log was verified, at the
// same length or not, end the reading, whatever is asked for; the log as it was is the control.
func TestWhatIsReadIsWhatWasVerified(t *testing.T) {
	t.Parallel()
	const segment, personal = "000000000000.jsonl", "000000000000.personal"
	swap := func(name, old, with string) func(dir string) error {
		return func(dir string) error {
			path := filepath.Join(dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			after := bytes.Replace(text, []byte(old), []byte(with), 1)
			if bytes.Equal(text, after) {
				return errors.New("nothing was changed")
			}
			return os.WriteFile(path, after, 0o600)
		}
	}
	for name, c := range map[string]struct {
		change func(dir string) error
		fails  bool
	}{
		"nothing":                    {func(string) error { return nil }, false},
		"an outcome":                 {swap(segment, `"outcome":"installed"`, `"outcome":"exceeded" `), true},
		"the run that is looked for": {swap(segment, `"agent_run_id":"r1"`, `"agent_run_id":"r9"`), true},
		"a name":                     {swap(personal, `"user":"ann"`, `"user":"bob"`), true},
		"the names taken away":       {func(dir string) error { return os.Remove(filepath.Join(dir, personal)) }, true},
		"the records taken away":     {func(dir string) error { return os.Remove(filepath.Join(dir, segment)) }, true},
		"the records cut":            {func(dir string) error { return os.Truncate(filepath.Join(dir, segment), 10) }, true},
		"more records": {func(dir string) error {
			path := filepath.Join(dir, segment)
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, append(text, text...), 0o600)
		}, false}, // they are past what was verified, and are not read
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			log, err := audit.Open(dir, audit.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if _, err := log.Append(t.Context(), audit.Record{Kind: audit.KindPackage, Outcome: audit.Installed, Run: "r1", User: "ann"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			r, verdict, err := audit.OpenVerified(t.Context(), dir, t.TempDir(), audit.VerifyOptions{})
			if err != nil || !verdict.Sound || verdict.Covered != 3 {
				t.Fatalf("%+v, %v", verdict, err)
			}
			defer func() { _ = r.Close() }()
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			n, failure := 0, error(nil)
			for record, err := range r.Records(t.Context(), audit.Filter{Run: "r1"}) {
				if err != nil {
					failure = err
					break
				}
				if n++; record.User != "ann" || record.Outcome != audit.Installed {
					t.Errorf("%+v", record)
				}
			}
			if (failure != nil) != c.fails || failure == nil && n != 3 {
				t.Errorf("%d records, %v", n, failure)
			}
		})
	}
}

// TestAForgedLogIsNotOpened, and a verdict says why.
func TestAForgedLogIsNotOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), audit.Record{Kind: audit.KindPackage, Outcome: audit.Installed}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "000000000000.jsonl")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(text, []byte(`"installed"`), []byte(`"exceeded" `), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r, verdict, err := audit.OpenVerified(t.Context(), dir, t.TempDir(), audit.VerifyOptions{}); r != nil || err != nil || verdict.Sound || len(verdict.Problems) == 0 {
		t.Errorf("%v, %+v, %v", r, verdict, err)
	}
	if _, _, err := audit.OpenVerified(t.Context(), t.TempDir(), t.TempDir(), audit.VerifyOptions{}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("where no log is: %v", err)
	}
}
