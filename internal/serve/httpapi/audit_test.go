package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/report"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
)

// auditServer serves the questions about a log.
func auditServer(t *testing.T) (*audit.FileLog, *client.Client) {
	t.Helper()
	log, c, _ := verifiedServer(t, nil)
	return log, c
}

// verifiedServer is auditServer of a log that is verified before each report; nil: nobody does.
func verifiedServer(t *testing.T, verify func(ctx context.Context, log *audit.FileLog, dir string) (audit.Verdict, error)) (*audit.FileLog, *client.Client, string) {
	t.Helper()
	dir := t.TempDir()
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	x := index.New(filepath.Join(t.TempDir(), "index.db"), log, index.Options{})
	t.Cleanup(func() { _ = x.Close() })
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	reports := report.Config{Index: x}
	if verify != nil {
		reports.Verify = func(ctx context.Context) (audit.Verdict, error) { return verify(ctx, log, dir) }
	}
	server := &http.Server{ConnContext: httpapi.ConnContext, Handler: httpapi.New(httpapi.Config{
		Log: log, Logger: slog.New(slog.DiscardHandler),
		Audit: httpapi.Auditing{Index: x, Reports: report.New(reports), End: log.End},
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return log, client.New(socket), dir
}

func add(t *testing.T, log *audit.FileLog, name string) {
	t.Helper()
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Installed, Run: "r1", Sandbox: "s1", Ecosystem: "python", Package: name, InstalledVersion: "1.0",
		ResolvedBy: "default",
	}
	if _, err := log.Append(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// TestAFollowerGetsEachRecordAsItComes: the stream does not end at the log's end.
func TestAFollowerGetsEachRecordAsItComes(t *testing.T) {
	log, c := auditServer(t)
	add(t, log, "p0")
	add(t, log, "p1")
	var got []uint64
	for line, err := range c.AuditStream(t.Context(), 1, true) {
		if err != nil {
			t.Fatal(err)
		}
		var r audit.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if got = append(got, r.Seq); len(got) == 20 {
			break
		}
		add(t, log, "more") // only now: the stream has to have sent the last one
	}
	if len(got) != 20 || got[0] != 1 || !slices.IsSorted(got) || got[19] != 20 {
		t.Errorf("the follower got %d", got)
	}
	n := 0
	for _, err := range c.AuditStream(t.Context(), 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if end, _ := log.End(); uint64(n) != end {
		t.Errorf("a stream that does not follow has %d of %d records", n, end)
	}
}

func TestQueriesAndReportsOverHTTP(t *testing.T) {
	log, c := auditServer(t)
	for _, name := range []string{"rich", "attrs", "rich"} {
		add(t, log, name)
	}
	query := func(q api.AuditQuery) (n int, err error) {
		for _, err := range c.AuditQuery(t.Context(), q) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	for what, want := range map[string]int{"rich": 2, "attrs": 1, "none": 0} {
		if n, err := query(api.AuditQuery{Where: map[string][]string{"package": {what}}}); n != want || err != nil {
			t.Errorf("%s: %d records, %v", what, n, err)
		}
	}
	for _, bad := range []api.AuditQuery{{Where: map[string][]string{"colour": {"red"}}}, {Limit: -1}, {Flags: []string{"nice"}}} {
		if _, err := query(bad); client.StatusOf(err) != http.StatusBadRequest {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	r, err := c.AuditReport(t.Context(), "off-allowlist", api.AuditQuestion{})
	if err != nil || r.Found != 3 || len(r.Tables[0].Rows) != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	pinned := "rich==1.0 --hash=sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
	r, err = c.AuditReport(t.Context(), "not-in-lockfile", api.AuditQuestion{Lockfiles: []api.Lockfile{{Source: "/w/requirements.txt", Document: []byte(pinned)}}})
	if err != nil || r.Found != 1 || r.Tables[0].Rows[0]["package"] != "python attrs" {
		t.Errorf("%+v, %v", r, err)
	}
	for name, q := range map[string]api.AuditQuestion{"nonsense": {}, "run": {}, "off-allowlist": {Limit: -1}, "not-in-lockfile": {Lockfiles: []api.Lockfile{{Source: "x.md"}}}} {
		if _, err := c.AuditReport(t.Context(), name, q); client.StatusOf(err) != http.StatusBadRequest && client.StatusOf(err) != http.StatusNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAReportOfALogThatWasChanged: before each report the log is verified, and the report says what
// was proved. Of one in which a byte was changed in place none is made, though the index knows
// what stood there; put back, it is reported on again (the control). Without a verification the
// report says nothing of one.
func TestAReportOfALogThatWasChanged(t *testing.T) {
	log, c, dir := verifiedServer(t, func(ctx context.Context, log *audit.FileLog, dir string) (audit.Verdict, error) {
		if err := audit.AwaitCovered(ctx, log, time.Minute); err != nil {
			return audit.Verdict{}, err
		}
		return audit.Verify(ctx, dir, audit.VerifyOptions{})
	})
	add(t, log, "p0")
	add(t, log, "p1")
	asks := func() (api.AuditReport, error) {
		return c.AuditReport(t.Context(), "off-allowlist", api.AuditQuestion{})
	}
	r, err := asks()
	if err != nil || r.Verified != "2 records by the key that lies with the log" {
		t.Fatalf("%+v, %v", r, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	change := func(from, to string) {
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(files[0], os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteAt([]byte(to), int64(bytes.Index(text, []byte(from)))); err != nil {
			t.Fatal(err)
		}
	}
	change(`"package_name":"p1"`, `"package_name":"p7"`)
	if r, err := asks(); client.StatusOf(err) != http.StatusConflict || !strings.Contains(err.Error(), "is not as it was written") || len(r.Tables) > 0 {
		t.Errorf("of a log in which a byte was changed: %+v, %v", r, err)
	}
	change(`"package_name":"p7"`, `"package_name":"p1"`)
	if r, err := asks(); err != nil || r.Verified == "" {
		t.Errorf("put back: %+v, %v", r, err)
	}
	other, c := auditServer(t)
	add(t, other, "p0")
	if r, err := asks(); err != nil || r.Verified != "" || r.Found != 1 {
		t.Errorf("where nobody verifies: %+v, %v", r, err)
	}
}
