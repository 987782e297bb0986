package report_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/report"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// start is when the test's log begins; each record is an hour after the last.
func start() time.Time { return time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC) }

// ask writes a log of the records and asks a report about it.
func ask(t *testing.T, name string, q report.Question, config report.Config, records ...audit.Record) report.Report {
	t.Helper()
	answer, err := tryAsk(t, name, q, config, records...)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func tryAsk(t *testing.T, name string, q report.Question, config report.Config, records ...audit.Record) (report.Report, error) {
	t.Helper()
	var now atomic.Int64 // the log reads it from its own goroutines
	now.Store(start().UnixNano())
	log, err := audit.Open(t.TempDir(), audit.Options{Clock: clock.Plain(func() time.Time { return time.Unix(0, now.Load()) })})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, r := range records {
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		now.Add(int64(time.Hour))
	}
	config.Index = index.New(filepath.Join(t.TempDir(), "index.db"), log, index.Options{})
	defer config.Index.Close()
	return report.New(config).Answer(t.Context(), name, q)
}

// found are the records of a report's first table, with why.
func found(r report.Report) map[string]string {
	rows := map[string]string{}
	for _, row := range r.Tables[0].Rows {
		rows[row["record"]] = row["why"]
	}
	return rows
}

// expect compares the records that were found.
func expect(t *testing.T, r report.Report, want map[string]string) {
	t.Helper()
	got := found(r)
	for record, why := range want {
		if !strings.Contains(got[record], why) || got[record] == "" {
			t.Errorf("record %s was found for %q, want %q", record, got[record], why)
		}
	}
	for record, why := range got {
		if _, wanted := want[record]; !wanted {
			t.Errorf("record %s was found for %q", record, why)
		}
	}
	if r.Found != len(want) {
		t.Errorf("%d were found, want %d", r.Found, len(want))
	}
	if r.Verdict == "" || !strings.HasPrefix(r.Asked, "Asked: ") {
		t.Errorf("asked %q, verdict %q", r.Asked, r.Verdict)
	}
}

func file(run, name, version string, change func(*audit.Record)) audit.Record {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Served, Run: run, Sandbox: "sb-" + run, Policy: "sha256:aa", Ecosystem: "python", Package: name,
		InstalledVersion: version, SourceURL: "https://files.example/" + name, SHA256: strings.Repeat("a", 64), ResolvedBy: "allowlist", Rule: "allowed_packages.python." + name,
	}
	if change != nil {
		change(&r)
	}
	return r
}

func install(run, name, version string, change func(*audit.Record)) audit.Record {
	return file(run, name, version, func(r *audit.Record) {
		r.Outcome, r.GuestClaimed, r.Detail = audit.Installed, true, map[string]string{"path": "/x/" + name}
		if change != nil {
			change(r)
		}
	})
}

func started(run, locks string) audit.Record {
	r := audit.Record{Kind: audit.KindSandbox, Outcome: audit.Started, Run: run, Sandbox: "sb-" + run, Policy: "sha256:aa", User: "ada", Task: "Draw", Detail: map[string]string{}}
	if locks != "" {
		r.Detail["lockfiles_digest"], r.Detail["lockfiles"] = locks, "sha256:12 /w/requirements.txt"
	}
	return r
}

func finished(run string) audit.Record {
	return audit.Record{Kind: audit.KindSandbox, Outcome: audit.Finished, Run: run, Sandbox: "sb-" + run, Policy: "sha256:aa", Reason: "its command ended"}
}

// lock is a baseline: pins by package of python.
type lock map[string][]policy.Pin

func (l lock) For(pkg pkgref.Ref) *policy.Lock {
	if pkg.Ecosystem != pkgref.Python {
		return nil
	}
	return &policy.Lock{Mode: policy.LockPrefer, Pins: l[pkg.Name]}
}

func pin(version string, digests ...string) []policy.Pin {
	return []policy.Pin{{Version: version, Digests: digests}}
}

// kept gives the lockfiles of one digest.
func kept(digest string, l lock) report.Config {
	return report.Config{Lockfiles: func(asked string) (report.Baseline, error) {
		if asked != digest {
			return nil, fault.New(fault.ErrNotFound, "not kept")
		}
		return l, nil
	}}
}

func lockedLog() []audit.Record {
	other := strings.Repeat("b", 64)
	return []audit.Record{
		started("r1", "sha256:lock"), // 0
		file("r1", "rich", "13.7.1", nil),
		install("r1", "rich", "13.7.1", nil),                                             // 2: pinned
		install("r1", "attrs", "24.1.0", nil),                                            // 3: another version
		install("r1", "evil", "1.0", nil),                                                // 4: not in it
		install("r1", "idna", "3.7", func(r *audit.Record) { r.SHA256 = other }),         // 5: another file
		install("r1", "urllib3", "2.0", nil),                                             // 6: pinned by a sha512
		install("r1", "is-odd", "3.0.1", func(r *audit.Record) { r.Ecosystem = "node" }), // 7
		install("r1", "inner", "1.0", func(r *audit.Record) { r.Detail["bundled_in"] = "python rich 13.7.1"; r.ResolvedBy = "" }), // 8
		install("r1", "mine", "0.1", func(r *audit.Record) { r.Detail["origin"] = "local"; r.ResolvedBy = "" }),                   // 9
		started("r2", ""),                 // 10
		install("r2", "evil", "1.0", nil), // 11: no lockfile to compare with
		started("r3", "sha256:gone"),      // 12
		install("r3", "evil", "1.0", nil), // 13: lockfiles are not kept
	}
}

func baseline() lock {
	a := "sha256:" + strings.Repeat("a", 64)
	return lock{"rich": pin("13.7.1", a), "attrs": pin("23.2.0", a), "idna": pin("3.7", a), "urllib3": pin("2.0", "sha512:"+strings.Repeat("c", 128))}
}

func TestNotInLockfile(t *testing.T) {
	r := ask(t, "not-in-lockfile", report.Question{}, kept("sha256:lock", baseline()), lockedLog()...)
	expect(t, r, map[string]string{"3": "pins 23.2.0", "4": "does not have it", "5": "other files", "7": "no lockfile for node"})
	if r.Unjudged != 2 || !strings.Contains(r.Verdict, "1 install of runs that had no lockfile") || !strings.Contains(r.Verdict, "1 install could not be compared") {
		t.Errorf("%d unjudged: %s", r.Unjudged, r.Verdict)
	}
	// A release that was never served has no digest to compare: it is no other file.
	never := install("r1", "rich", "13.7.1", func(r *audit.Record) { r.SHA256 = "" })
	expect(t, ask(t, "not-in-lockfile", report.Question{}, kept("sha256:lock", baseline()), started("r1", "sha256:lock"), never), map[string]string{})
	// A baseline that is given now is everybody's.
	r = ask(t, "not-in-lockfile", report.Question{Baseline: baseline()}, report.Config{}, lockedLog()...)
	expect(t, r, map[string]string{"3": "pins", "4": "not have", "5": "other files", "7": "node", "11": "not have", "13": "not have"})
	if r.Unjudged != 0 {
		t.Errorf("%d unjudged with a baseline given", r.Unjudged)
	}
	// Nobody has the lockfiles: nothing is judged, and that is said.
	r = ask(t, "not-in-lockfile", report.Question{}, report.Config{}, lockedLog()...)
	expect(t, r, map[string]string{})
	if r.Unjudged != 8 {
		t.Errorf("%d unjudged without lockfiles, want 8: %s", r.Unjudged, r.Verdict)
	}
	r = ask(t, "not-in-lockfile", report.Question{}, kept("sha256:lock", baseline()), lockedLog()[:3]...)
	expect(t, r, map[string]string{})
}

func TestOffAllowlist(t *testing.T) {
	by := func(step string) func(*audit.Record) { return func(r *audit.Record) { r.ResolvedBy = step } }
	approvedBy := func(id string) func(*audit.Record) {
		return func(r *audit.Record) { r.ResolvedBy, r.Approval = "approval", id }
	}
	good := []audit.Record{
		file("r1", "a", "1", by("allowlist")), install("r1", "a", "1", by("allowlist")),
		file("r1", "b", "1", by("dependency")), file("r1", "c", "1", by("lockfile")),
		{Kind: audit.KindApproval, Outcome: audit.Approved, Approval: "ap-1", User: "ada"},
		file("r1", "d", "1", approvedBy("ap-1")), install("r1", "d", "1", by("approval")),
		install("r1", "inner", "1", func(r *audit.Record) { r.ResolvedBy = ""; r.Detail["bundled_in"] = "python a 1" }),
		file("r1", "blocked", "1", func(r *audit.Record) { r.Outcome, r.ResolvedBy = audit.Blocked, "default" }),
		file("r1", "planned", "1", func(r *audit.Record) { r.Outcome, r.ResolvedBy = audit.Planned, "default" }),
	}
	r := ask(t, "off-allowlist", report.Question{}, report.Config{}, good...)
	expect(t, r, map[string]string{})
	if want := "Nothing off the allowlist in 4 served files and 3 installs of 1 run."; r.Verdict != want {
		t.Errorf("verdict %q, want %q", r.Verdict, want)
	}
	bad := append(slices.Clone(good),
		file("r2", "e", "1", by("default")),      // 10
		install("r2", "e", "1", by("default")),   // 11
		file("r2", "f", "1", by("toolchain")),    // 12
		install("r2", "g", "1", by("")),          // 13
		file("r2", "h", "1", approvedBy("ap-2")), // 14: approved only afterwards
		audit.Record{Kind: audit.KindApproval, Outcome: audit.Denied, Approval: "ap-3"},
		file("r2", "i", "1", approvedBy("ap-3")), // 16
		audit.Record{Kind: audit.KindApproval, Outcome: audit.Approved, Approval: "ap-2"},
		file("r2", "j", "1", by("magic")),   // 18
		file("r2", "k", "1", by("observe")), // 19
	)
	r = ask(t, "off-allowlist", report.Question{}, report.Config{}, bad...)
	expect(t, r, map[string]string{"10": "packages.default", "11": "packages.default", "12": "toolchains", "13": "never served", "14": "no approval", "16": "no approval", "18": "magic", "19": "the policy only observed"})
}

func TestVersionMismatch(t *testing.T) {
	wants := func(ecosystem, requested string) func(*audit.Record) {
		return func(r *audit.Record) { r.Ecosystem, r.RequestedVersion = ecosystem, requested }
	}
	r := ask(t, "version-mismatch", report.Question{}, kept("sha256:lock", baseline()),
		started("r1", "sha256:lock"),
		install("r1", "rich", "13.7.1", nil),                              // 1: as pinned
		install("r1", "attrs", "24.1.0", nil),                             // 2: pinned otherwise
		install("r1", "a", "1.5", wants("python", ">=1,<2")),              // 3
		install("r1", "b", "2.5", wants("python", ">=1,<2")),              // 4: no
		install("r1", "c", "1.0", wants("python", "1.0.0")),               // 5: equal
		install("r1", "d", "1.1", wants("python", "1.0")),                 // 6: no
		install("r1", "e", "1.2.3", wants("node", "^1.0.0")),              // 7
		install("r1", "f", "2.0.0", wants("node", "^1.0.0")),              // 8: no
		install("r1", "g", "2.0.0", wants("node", "latest")),              // 9: unclear
		install("r1", "example.com/h", "v1.5.0", wants("go", ">=v1.4.0")), // 10
		install("r1", "example.com/i", "v1.3.0", wants("go", ">=v1.4.0")), // 11: no
		install("r1", "example.com/j", "v1.3.0", wants("go", "v1.3.0")),   // 12
		install("r1", "k", "1.4.0", wants("rust", ">=1.2.0,<2")),          // 13
		install("r1", "l", "2.4.0", wants("rust", ">=1.2.0,<2")),          // 14: no
		install("r1", "m", "1.0", nil),                                    // 15: nothing was requested
		file("r1", "n", "2.5", wants("python", "<1")),                     // 16: not installed
	)
	expect(t, r, map[string]string{"2": "pinned: 23.2.0", "4": ">=1,<2", "6": "1.0", "8": "^1.0.0", "11": ">=v1.4.0", "14": ">=1.2.0"})
	if r.Unjudged != 1 || !strings.Contains(r.Verdict, "6 installs in another version") || !strings.Contains(r.Verdict, "of 13 installs with a pin or a request") {
		t.Errorf("%d unjudged: %s", r.Unjudged, r.Verdict)
	}
	expect(t, ask(t, "version-mismatch", report.Question{}, report.Config{}, install("r1", "a", "1.5", wants("python", ">=1,<2"))), map[string]string{})
}

func TestUnexpectedSource(t *testing.T) {
	from := func(url string) func(*audit.Record) { return func(r *audit.Record) { r.SourceURL = url } }
	records := []audit.Record{
		file("r1", "a", "1", nil),
		file("r1", "a", "2", nil),
		file("r2", "a", "3", from("https://evil.example/a")),        // 2: neither
		file("r2", "b", "1", from("https://mirror.example:8443/b")), // 3: configured
		file("r2", "b", "2", nil),                                   // 4: configured, but not where b came from
		file("r2", "c", "1", from("https://elsewhere.example/c")),   // 5: not configured, and new
		file("r2", "c", "2", from("https://elsewhere.example/c")),   // 6: as 5
		file("r2", "d", "1", from("")),                              // 7
		file("r2", "a", "4", nil),
		file("r2", "a", "5", func(r *audit.Record) { r.Ecosystem = "node" }), // 9: no upstream of node
	}
	upstreams := func() map[string][]string {
		return map[string][]string{"python": {"https://files.example", "https://mirror.example:8443"}, "node": {"https://npm.example"}}
	}
	r := ask(t, "unexpected-source", report.Question{}, report.Config{Upstreams: upstreams}, records...)
	expect(t, r, map[string]string{"2": "record 0, came from https://files.example", "4": "mirror.example:8443", "5": "not an upstream of python", "6": "not an upstream", "7": "not on record", "9": "not an upstream of node"})
	r = ask(t, "unexpected-source", report.Question{}, report.Config{}, records...)
	expect(t, r, map[string]string{"2": "record 0", "4": "mirror", "7": "not on record"})
	if !strings.Contains(r.Verdict, "not known here") {
		t.Errorf("it does not say that the upstreams are not known: %s", r.Verdict)
	}
	expect(t, ask(t, "unexpected-source", report.Question{}, report.Config{Upstreams: upstreams}, records[:2]...), map[string]string{})
}

// TestBusyRuns: a policy's runs are measured by its other runs.
func TestBusyRuns(t *testing.T) {
	var records []audit.Record
	add := func(policy, run string, events int) {
		for i := range events {
			r := file(run, fmt.Sprintf("p%d", i), "1", nil)
			if i%2 == 1 {
				r.Outcome = audit.Installed
			}
			r.Policy = policy
			records = append(records, r)
		}
	}
	for i := range 12 {
		add("sha256:quiet", fmt.Sprintf("quiet-%d", i), 3+i%2)
		add("sha256:loud", fmt.Sprintf("loud-%d", i), 9+i%3)
	}
	add("sha256:quiet", "busy", 10)
	add("sha256:loud", "usual", 10)
	add("sha256:quiet", "twice", 7) // above the percentile, not above twice the median
	add("sha256:rare", "alone", 40)
	r := ask(t, "busy-runs", report.Question{}, report.Config{}, records...)
	var runs []string
	for _, row := range r.Tables[0].Rows {
		runs = append(runs, row["run"])
	}
	if !slices.Equal(runs, []string{"busy"}) || r.Found != 1 || r.Unjudged != 1 {
		t.Errorf("busy are %v (found %d), %d unjudged", runs, r.Found, r.Unjudged)
	}
	if row := r.Tables[0].Rows[0]; row["events"] != "10" || row["median"] != "3" && row["median"] != "4" || row["other runs"] != "13" {
		t.Errorf("the row is %v", row)
	}
	r = ask(t, "busy-runs", report.Question{MinRuns: 20}, report.Config{}, records...)
	if r.Found != 0 || r.Unjudged != 28 {
		t.Errorf("with 20 runs needed %d are busy, %d unjudged", r.Found, r.Unjudged)
	}
	r = ask(t, "busy-runs", report.Question{Policy: "sha256:lo*"}, report.Config{}, records...)
	if r.Found != 0 || r.Unjudged != 0 || !strings.Contains(r.Verdict, "13 runs") {
		t.Errorf("of one policy: %s", r.Verdict)
	}
}

func TestUnaccounted(t *testing.T) {
	r := ask(t, "unaccounted", report.Question{}, report.Config{},
		file("r1", "a", "1", nil), install("r1", "a", "1", nil),
		install("r1", "b", "1", func(r *audit.Record) { r.ResolvedBy = ""; r.Detail["unaccounted"] = "true" }), // 2
		install("r1", "b", "1", func(r *audit.Record) { r.Outcome = audit.Alarm; r.ResolvedBy = ""; r.Detail["unaccounted"] = "true" }),
		install("r1", "c", "1", func(r *audit.Record) { r.ResolvedBy = "" }), // 4: the flag was forgotten
		install("r1", "d", "1", func(r *audit.Record) { r.ResolvedBy = ""; r.Detail["bundled_in"] = "python a 1" }),
		install("r1", "e", "1", func(r *audit.Record) { r.ResolvedBy = ""; r.Detail["origin"] = "template" }),
	)
	expect(t, r, map[string]string{"2": "nothing of it was served", "4": "no decision"})
	r = ask(t, "unaccounted", report.Question{}, report.Config{}, file("r1", "a", "1", nil), install("r1", "a", "1", nil))
	expect(t, r, map[string]string{})
	if r.Verdict != "Each of 1 install in 1 run was served before." {
		t.Error(r.Verdict)
	}
}

func approvalLog() []audit.Record {
	queue := func(event string, outcome audit.Outcome, id, run string) audit.Record {
		return audit.Record{Kind: audit.KindApproval, Outcome: outcome, Approval: id, Run: run, Ecosystem: "python", Package: "rich", InstalledVersion: "13.7.1", Detail: map[string]string{"event": event}}
	}
	approved := queue("approved", audit.Approved, "ap-1", "")
	approved.User, approved.Reason = "grace", "looked at it"
	approved.Detail["scope"], approved.Detail["expires"], approved.Detail["digests"] = "run", "2026-12-01T00:00:00Z", "sha256:aa"
	served := file("r1", "rich", "13.7.1", func(r *audit.Record) { r.ResolvedBy, r.Approval = "approval", "ap-1" })
	return []audit.Record{
		started("r1", ""),
		queue("asked", audit.Pending, "ap-1", "r1"),
		approved, // 2
		served,
		queue("asked", audit.Pending, "ap-2", "r2"),
		queue("denied", audit.Denied, "ap-2", ""),   // 5
		queue("expired", audit.Expired, "ap-3", ""), // 6
		queue("revoked", audit.Expired, "ap-1", ""), // 7
		queue("refused", audit.Failed, "ap-2", ""),  // 8
		finished("r1"),
	}
}

func TestApprovals(t *testing.T) {
	r := ask(t, "approvals", report.Question{}, report.Config{}, approvalLog()...)
	if r.Found != 5 || r.Verdict != "5 changes of held requests: 1 approved, 1 denied, 1 revoked, 1 expired, 1 answer refused." {
		t.Errorf("found %d: %s", r.Found, r.Verdict)
	}
	want := map[string]string{
		"record": "2", "time": "2026-11-01T02:00:00Z", "request": "ap-1", "answer": "approved", "by": "grace", "package": "python rich", "version": "13.7.1",
		"scope": "run", "expires": "2026-12-01T00:00:00Z", "let in": "1 file in 1 run", "digests": "sha256:aa", "reason": "looked at it",
	}
	for column, text := range want {
		if got := r.Tables[0].Rows[0][column]; got != text {
			t.Errorf("%s is %q, want %q", column, got, text)
		}
	}
	r = ask(t, "approvals", report.Question{Run: "r2"}, report.Config{}, approvalLog()...)
	if r.Found != 2 || r.Tables[0].Rows[0]["record"] != "5" || r.Tables[0].Rows[1]["record"] != "8" {
		t.Errorf("of r2's request %d changes were found: %v", r.Found, r.Tables[0].Rows)
	}
	r = ask(t, "approvals", report.Question{}, report.Config{}, approvalLog()[:2]...)
	if r.Found != 0 {
		t.Errorf("an ask counts as an answer: %s", r.Verdict)
	}
}

func TestRun(t *testing.T) {
	exit := 3
	records := append(approvalLog()[:9:9],
		audit.Record{Kind: audit.KindCommand, Outcome: audit.Finished, Run: "r1", Sandbox: "sb-r1", Command: []string{"pip", "install"}, Exit: &exit, Detail: map[string]string{"signal": "SIGTERM"}},
		audit.Record{Kind: audit.KindNetwork, Outcome: audit.Blocked, Run: "r1", Detail: map[string]string{"name": "evil.example"}},
		install("r1", "rich", "13.7.1", nil),
		file("r1", "flask", "3", func(r *audit.Record) { r.Outcome = audit.Blocked }),
		audit.Record{Kind: audit.KindSandbox, Outcome: audit.Frozen, Run: "r1", Sandbox: "sb-r1"},
		audit.Record{Kind: audit.KindSandbox, Outcome: audit.Exceeded, Run: "r1", Sandbox: "sb-r1", Reason: "too many records"},
		audit.Record{Kind: audit.KindSandbox, Outcome: audit.Restored, Run: "r1", Sandbox: "sb-r1", Detail: map[string]string{"copy_of": "sb0", "snapshot": "snap1", "digest": "sha256:1", "came_with": "python six 1.16"}},
		file("r9", "other", "3", nil),
		finished("r1"),
	)
	r := ask(t, "run", report.Question{Run: "r1"}, report.Config{}, records...)
	rows := map[string][]map[string]string{}
	for _, table := range r.Tables {
		rows[table.Title] = table.Rows
	}
	for title, n := range map[string]int{"Alarms": 0, "Past a limit": 1, "Commands": 1, "Served": 1, "Installed": 1, "Refused": 1, "Held and answered": 3, "Frozen": 1, "Copies": 1, "Names": 1, "Other": 0} {
		if len(rows[title]) != n {
			t.Errorf("%s has %d rows, want %d: %v", title, len(rows[title]), n, rows[title])
		}
	}
	about := map[string]string{}
	for _, row := range rows[""] {
		about[row["about"]] = row["is"]
	}
	if about["who"] != "ada" || about["task"] != "Draw" || about["sandboxes"] != "sb-r1" || !strings.HasSuffix(about["ended"], "its command ended") {
		t.Errorf("about: %v", about)
	}
	if row := rows["Commands"][0]; row["what"] != "$ pip install" || row["exit"] != "3 (SIGTERM)" {
		t.Errorf("the command is %v", row)
	}
	if row := rows["Copies"][0]; row["copy of"] != "sb0" || row["snapshot"] != "snap1" || row["came with"] != "python six 1.16" || row["digest"] != "sha256:1" {
		t.Errorf("the copy is %v", row)
	}
	if len(r.Records) != 13 {
		t.Errorf("%d records, want 13", len(r.Records))
	}
	for i, text := range r.Records {
		var record audit.Record
		if err := json.Unmarshal(text, &record); err != nil || i > 0 && record.Run == "r9" {
			t.Errorf("record %s: %v", text, err)
		}
	}
	if _, err := tryAsk(t, "run", report.Question{Run: "nobody"}, report.Config{}, records...); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("an unknown run: %v", err)
	}
	if _, err := tryAsk(t, "run", report.Question{}, report.Config{}, records...); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("no run: %v", err)
	}
}

// TestRunThatWasObserved: the page of a run says first that its policy refused nothing.
func TestRunThatWasObserved(t *testing.T) {
	r := ask(t, "run", report.Question{Run: "r1"}, report.Config{},
		audit.Record{Kind: audit.KindSandbox, Outcome: audit.Started, Run: "r1", Sandbox: "sb-r1", Detail: map[string]string{"mode": "observe"}},
		file("r1", "flask", "3", func(r *audit.Record) {
			r.Outcome, r.Rule, r.Reason = audit.WouldDeny, "packages.default", "no list has it"
		}),
		file("r1", "flask", "3", func(r *audit.Record) { r.ResolvedBy = "observe" }),
	)
	if !strings.Contains(r.Verdict, "0 refused, 1 let through that the policy, WHICH ONLY OBSERVED, would have refused") {
		t.Errorf("verdict %q", r.Verdict)
	}
	said := map[string]string{}
	for _, table := range r.Tables {
		for _, row := range table.Rows {
			said[table.Title+" "+row["about"]] = row["is"] + row["package"] + " " + row["outcome"]
		}
	}
	if said["Let through by a policy that only observes "] != "python flask would_deny" || said[" mode"] != "observe " {
		t.Errorf("%v", said)
	}
}

// TestRunSaysNothingTwice: what was refused again, and the record that stands for more of
// it, are one row with a count, and no refusals more.
func TestRunSaysNothingTwice(t *testing.T) {
	blocked := func(reason string, n int, detail map[string]string) audit.Record {
		return file("r1", "flask", "3", func(r *audit.Record) {
			r.Outcome, r.Reason, r.Count, r.Detail = audit.Blocked, reason, n, detail
		})
	}
	gone := file("r1", "gone", "", func(r *audit.Record) { r.Outcome, r.Rule, r.Reason = audit.Failed, audit.RuleMissing, "gone" })
	away := gone
	away.Rule, away.Reason = audit.RuleFailed, "away"
	name := audit.Record{Kind: audit.KindNetwork, Outcome: audit.Blocked, Run: "r1", Reason: "no", Detail: map[string]string{"name": "evil.example"}}
	again := name
	again.Count, again.Detail = 4, map[string]string{"name": "evil.example", "event": "repeats"}
	r := ask(t, "run", report.Question{Run: "r1"}, report.Config{},
		blocked("a", 0, nil), blocked("b", 0, nil), blocked("a", 2, map[string]string{"event": "repeats"}), blocked("a", 0, nil), gone, away, name, again)
	times := map[string]string{}
	for _, table := range r.Tables {
		for _, row := range table.Rows {
			if row["times"] != "" {
				times[table.Title+" "+row["reason"]] += row["times"] + ","
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"Refused a": "4,", "Refused b": "1,", "Missing upstream gone": "1,", "Failed upstream away": "1,", "Names no": "5,"}, times); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(r.Verdict, " 4 refused, 1 missing upstream, 1 failed upstream;") && !strings.Contains(r.Verdict, " 4 refused, 1 missing upstream, 1 failed upstream,") {
		t.Errorf("the verdict is %q, of 3 refused files and a name, one that is gone and one that could not be had", r.Verdict)
	}
}

// TestScope: a question about a time, a run or a policy finds nothing of others,
// and says over which records it was asked.
func TestScope(t *testing.T) {
	bad := func(r *audit.Record) { r.ResolvedBy = "default" }
	records := []audit.Record{
		file("r1", "a", "1", bad), file("r2", "b", "1", bad), file("r3", "c", "1", func(r *audit.Record) { bad(r); r.Policy = "sha256:bb" }), file("r1", "d", "1", bad),
	}
	at := func(hours int) time.Time { return start().Add(time.Duration(hours) * time.Hour) }
	for name, c := range map[string]struct {
		q           report.Question
		want        []string
		first, last uint64
	}{
		"all":        {report.Question{}, []string{"0", "1", "2", "3"}, 0, 3},
		"since":      {report.Question{Since: at(2)}, []string{"2", "3"}, 2, 3},
		"until":      {report.Question{Until: at(2)}, []string{"0", "1"}, 0, 1},
		"between":    {report.Question{Since: at(1), Until: at(2)}, []string{"1"}, 1, 1},
		"run":        {report.Question{Run: "r1"}, []string{"0", "3"}, 0, 3},
		"policy":     {report.Question{Policy: "sha256:bb"}, []string{"2"}, 0, 3},
		"no policy":  {report.Question{Policy: "sha256:cc*"}, nil, 0, 3},
		"run, since": {report.Question{Run: "r1", Since: at(1)}, []string{"3"}, 1, 3},
	} {
		r := ask(t, "off-allowlist", c.q, report.Config{Checkpoint: func() string { return "a checkpoint" }}, records...)
		var got []string
		for _, row := range r.Tables[0].Rows {
			got = append(got, row["record"])
		}
		runs := map[string]bool{}
		for _, i := range c.want {
			runs[records[i[0]-'0'].Run] = true
		}
		if want := fmt.Sprintf("in %d served file", len(c.want)); !strings.Contains(r.Verdict, want) || !strings.Contains(r.Verdict, fmt.Sprintf("of %d run", len(runs))) {
			t.Errorf("%s: %s", name, r.Verdict)
		}
		if !slices.Equal(got, c.want) || r.First != c.first || r.Last != c.last || r.Empty || r.Checkpoint != "a checkpoint" {
			t.Errorf("%s: %v over %d to %d (%s)", name, got, r.First, r.Last, r.Checkpoint)
		}
	}
	r := ask(t, "off-allowlist", report.Question{Since: at(100)}, report.Config{}, records...)
	if !r.Empty || r.Found != 0 || !strings.Contains(r.Asked, "over no records") {
		t.Errorf("after the log's end: %s", r.Asked)
	}
	r = ask(t, "off-allowlist", report.Question{Limit: 1}, report.Config{}, records...)
	if r.Found != 4 || len(r.Tables[0].Rows) != 1 {
		t.Errorf("with a limit %d were found and %d are shown", r.Found, len(r.Tables[0].Rows))
	}
}

func TestErasedIsSaid(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Append(t.Context(), started("r1", "")); err != nil {
		t.Fatal(err)
	}
	x := index.New(filepath.Join(t.TempDir(), "index.db"), log, index.Options{})
	defer x.Close()
	who := func() map[string]string {
		r, err := report.New(report.Config{Index: x}).Answer(t.Context(), "run", report.Question{Run: "r1"})
		if err != nil {
			t.Fatal(err)
		}
		about := map[string]string{}
		for _, row := range r.Tables[0].Rows {
			about[row["about"]] = row["is"]
		}
		return about
	}
	if about := who(); about["who"] != "ada" || about["task"] != "Draw" {
		t.Errorf("before: %v", about)
	}
	if _, err := log.Erase(t.Context(), audit.EraseAsk{Run: "r1"}); err != nil {
		t.Fatal(err)
	}
	if about := who(); about["who"] != "(erased)" || about["task"] != "(erased)" {
		t.Errorf("after: %v", about)
	}
}

func TestUnknownReport(t *testing.T) {
	if _, err := tryAsk(t, "nonsense", report.Question{}, report.Config{}); !errors.Is(err, fault.ErrNotFound) {
		t.Error(err)
	}
	for _, n := range report.Names() {
		if n.Name == "run" {
			continue
		}
		if r := ask(t, n.Name, report.Question{}, report.Config{}); !r.Empty || r.Found != 0 || r.Verdict == "" {
			t.Errorf("%s over an empty log: %+v", n.Name, r)
		}
	}
}
