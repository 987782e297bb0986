package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// logDir is a log with two installs, one of them off the allowlist and with a
// name that a terminal and a spreadsheet would obey.
func logDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []string{"allowlist", "default"} {
		r := audit.Record{
			Kind: audit.KindPackage, Outcome: audit.Installed, Run: "=r\x1b[2J", Sandbox: "s1", Ecosystem: "python", Package: "p-" + by,
			InstalledVersion: "1", ResolvedBy: by,
		}
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWhen(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "7d": now.AddDate(0, 0, -7), "12h": now.Add(-12 * time.Hour), "90m": now.Add(-90 * time.Minute),
		"2026-11-01": time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), "2026-11-01T08:00:00Z": time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC),
	} {
		if got, err := parseTime("since", text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-7d", "7", "-12h", "2026-13-01", "d"} {
		if got, err := parseTime("since", text, now); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

// TestTheReportOfNoRunIsToldHowToNameOne, before any log is read, and of a run that is on no record which command lists those
// that are: of a copy of the log one that reads the copy.
func TestTheReportOfNoRunIsToldHowToNameOne(t *testing.T) {
	t.Parallel()
	dir, live := logDir(t), "cofferdam audit list --kind sandbox lists the runs"
	asked := "cofferdam audit query --kind sandbox --log " + dir
	const name = "the report run is about one run; name it, as in: cofferdam audit report run nightly-42; "
	for _, c := range []struct {
		words []string
		code  int
		want  string
	}{
		{nil, exitUsage, name + live},
		{[]string{"--log", dir}, exitUsage, name + asked + " lists the runs"},
		{[]string{"nosuch", "--log", dir}, exitUsage, `there is no run "nosuch" on record; ` + asked + " lists the runs\n"},
		{[]string{"nosuch", "--log", dir, "--partial"}, exitUsage, `there is no run "nosuch" on record; ` + asked + " --partial lists the runs\n"},
	} {
		root := newRoot()
		root.SetArgs(append([]string{"audit", "report", "run"}, c.words...))
		err := root.ExecuteContext(t.Context())
		if err == nil {
			t.Fatalf("%q: there is such a report", c.words)
		}
		var told bytes.Buffer
		complain(&told, err)
		if exitCode(err) != c.code || !strings.HasPrefix(told.String(), "cofferdam: "+c.want) {
			t.Errorf("%q: %q, not %q", c.words, told.String(), c.want)
		}
	}
	if code := execute(t.Context(), []string{"audit", "query", "--kind", "sandbox", "--log", dir, "--partial"}); code != 0 {
		t.Errorf("what lists a copy's runs ends with %d", code)
	}
}

// TestReportsAreSafeToShow: what others wrote reaches neither a terminal nor a
// spreadsheet as an instruction.
func TestReportsAreSafeToShow(t *testing.T) {
	source, err := openAuditSource(t.Context(), copyFlags{dir: logDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := source.close(); err != nil {
			t.Error(err)
		}
	}()
	answer, err := source.report(t.Context(), "off-allowlist", api.AuditQuestion{})
	if err != nil || answer.Found != 1 {
		t.Fatal(answer, err)
	}
	for name, f := range map[string]reportFlags{"text": {}, "csv": {csv: true}, "json": {json: true}} {
		var out bytes.Buffer
		if err := f.writeReport(&out, answer); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "p-default") || strings.Contains(out.String(), "p-allowlist") {
			t.Errorf("%s: %q", name, out.String())
		}
		if name == "csv" && (!strings.Contains(out.String(), ",'=r") || strings.Contains(out.String(), ",=r")) {
			t.Errorf("%s: %q", name, out.String())
		}
	}
}

func TestExitCodesOfReports(t *testing.T) {
	dir := logDir(t)
	for args, want := range map[string]int{
		"report off-allowlist":                                 0,
		"report off-allowlist --fail-if-any":                   exitFailure,
		"report unaccounted --fail-if-any":                     0,
		"report not-in-lockfile --fail-if-any":                 exitFailure, // nothing to compare with
		"report busy-runs --fail-if-any":                       0,
		"report nonsense":                                      exitUsage,
		"report run nobody":                                    exitUsage,
		"report off-allowlist some-run":                        exitUsage,
		"report off-allowlist --since sometimes":               exitUsage,
		"report off-allowlist --json --csv":                    exitUsage,
		"query --package p-default":                            0,
		"query --marked nice":                                  exitUsage,
		"export --format xml":                                  exitUsage,
		"export --cursor c":                                    exitUsage,
		"export --follow":                                      exitUsage,
		"export --out " + filepath.Join(t.TempDir(), "a"):      0,
		"export --out " + filepath.Join(t.TempDir(), "b", "c"): exitFailure,
	} {
		if got := execute(t.Context(), append([]string{"audit"}, append(strings.Fields(args), "--log", dir)...)); got != want {
			t.Errorf("%s: exit code %d, want %d", args, got, want)
		}
	}
	if got := execute(t.Context(), []string{"audit", "query", "--log", t.TempDir()}); got != exitUsage {
		t.Errorf("an empty directory: exit code %d", got)
	}
}
