package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
)

// installation is the API over a Unix socket, with a real log and database.
type installation struct {
	client *client.Client
	admin  *client.Client // over TCP, with a token
	log    *audit.FileLog
	dir    string
	db     *advisory.DB
}

func install(t *testing.T) installation {
	t.Helper()
	dir := t.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	in := installation{log: log, dir: dir, db: advisory.Open(filepath.Join(dir, "advisory"), advisory.Options{})}
	socket := filepath.Join(dir, "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := book.Issue(t.Context(), token.Grant{Name: "root", Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	api := httpapi.New(httpapi.Config{Log: log, Advisories: in.db, Tokens: book, Logger: slog.New(slog.DiscardHandler)})
	over := httptest.NewServer(api)
	t.Cleanup(over.Close)
	if in.admin, err = client.Open(client.Remote{URL: over.URL, Token: secret}); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: api, ConnContext: httpapi.ConnContext}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	in.client = client.New(socket)
	return in
}

func (in installation) records(t *testing.T, outcome audit.Outcome) []audit.Record {
	t.Helper()
	var all []audit.Record
	for r, err := range in.log.Records(t.Context(), audit.Filter{Outcomes: []audit.Outcome{outcome}}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func record(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "record.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const burnt = `{"id":"MAL-0000-1","affected":[{"package":{"ecosystem":"npm","name":"bad-name"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}]}]}`

// TestAdvisories: import, the alarm about what was let in, status, check and
// forgetting, as a client sees them and as the log tells them.
func TestAdvisories(t *testing.T) {
	in := install(t)
	if _, err := in.log.Append(t.Context(), audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Served, Run: "r1", Ecosystem: "node", Package: "bad-name", InstalledVersion: "1.0.0",
	}); err != nil {
		t.Fatal(err)
	}
	var steps []string
	done, err := in.client.ImportAdvisories(t.Context(), api.ImportAdvisories{Path: record(t, burnt), Label: "feed"}, func(e api.AdvisoryEvent) { steps = append(steps, e.Step) })
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Alarms) != 1 || done.Alarms[0].Runs[0] != "r1" || strings.Join(steps, ",") != "store,review the log" {
		t.Errorf("%+v %v", done, steps)
	}
	if alarms := in.records(t, audit.Alarm); len(alarms) != 1 || alarms[0].Package != "bad-name" {
		t.Errorf("%+v", alarms)
	}
	status, err := in.client.Advisories(t.Context())
	if err != nil || len(status.Sources) != 1 || status.Generation != done.Generation {
		t.Errorf("%+v %v", status, err)
	}
	facts, err := in.client.CheckPackage(t.Context(), "node", "bad-name", "1.0.0")
	if err != nil || len(facts.Malware) != 1 || !facts.Malware[0].Affected {
		t.Errorf("%+v %v", facts, err)
	}
	if err := in.client.RemoveAdvisories(t.Context(), "other"); client.StatusOf(err) != http.StatusNotFound {
		t.Error(err)
	}
	if err := errors.Join(in.client.RemoveAdvisories(t.Context(), "feed"), in.client.RemoveAllAdvisories(t.Context())); err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, r := range in.records(t, audit.Started) {
		events = append(events, r.Detail["event"]+" "+r.Detail["label"])
		if r.User == "" {
			t.Errorf("nobody did it: %+v", r)
		}
	}
	if got := strings.Join(events, ","); got != "advisories_import feed,advisories_remove other,advisories_remove feed,advisories_remove " {
		t.Errorf("on record: %s", got)
	}
}

// TestImportRefused: bad input is told with its file, and nothing is recorded
// as done.
func TestImportRefused(t *testing.T) {
	in := install(t)
	done, err := in.client.ImportAdvisories(t.Context(), api.ImportAdvisories{Path: filepath.Dir(record(t, "{"))}, func(api.AdvisoryEvent) {})
	if client.StatusOf(err) != http.StatusBadRequest || len(done.Problems) != 1 || done.Problems[0].Where != "record.json" {
		t.Errorf("%v %+v", err, done)
	}
	if n := len(in.records(t, audit.Started)); n != 0 {
		t.Errorf("%d records", n)
	}
	if _, err := in.client.CheckPackage(t.Context(), "perl", "x", ""); client.StatusOf(err) != http.StatusBadRequest {
		t.Error(err)
	}
}

// TestUnrecordedImport: what can't be recorded does not happen.
func TestUnrecordedImport(t *testing.T) {
	in := install(t)
	if err := in.log.Close(); err != nil {
		t.Fatal(err)
	}
	before := in.db.Generation()
	_, err := in.client.ImportAdvisories(t.Context(), api.ImportAdvisories{Path: record(t, burnt)}, func(api.AdvisoryEvent) {})
	if client.StatusOf(err) != http.StatusServiceUnavailable || in.db.Generation() != before {
		t.Errorf("%v, generation %s", err, in.db.Generation())
	}
	if err := in.client.RemoveAllAdvisories(t.Context()); client.StatusOf(err) != http.StatusServiceUnavailable {
		t.Error(err)
	}
}

// TestATokenReadsNoFileOfTheHost: an admin token imports what it sends, and names no
// path: what can't be imported would be told to it line by line.
func TestATokenReadsNoFileOfTheHost(t *testing.T) {
	in := install(t)
	quiet := func(api.AdvisoryEvent) {}
	secret := record(t, "-----BEGIN PRIVATE KEY-----\nthe-key-itself\n")
	recorded := func(done api.AdvisoryImport, err error) string {
		text, merr := json.Marshal(done)
		return fmt.Sprint(string(text), merr, err)
	}
	done, err := in.client.ImportAdvisories(t.Context(), api.ImportAdvisories{Path: secret, Popular: "python"}, quiet)
	if !strings.Contains(recorded(done, err), "PRIVATE KEY") {
		t.Fatalf("the control is broken: an import on the host does not say what is wrong with the file: %s", recorded(done, err))
	}
	for _, req := range []api.ImportAdvisories{{Path: secret}, {Path: secret, Popular: "python"}, {Path: secret, Popular: "python", Label: "x", KeepGoing: true}, {Path: record(t, burnt)}} {
		done, err := in.admin.ImportAdvisories(t.Context(), req, quiet)
		if client.StatusOf(err) != http.StatusForbidden || strings.Contains(recorded(done, err), "KEY") {
			t.Errorf("%+v: %s", req, recorded(done, err))
		}
	}
	if all := in.db.Status().Sources; len(all) != 0 {
		t.Errorf("a token imported a file of the host: %+v", all)
	}

	if _, err := in.admin.UploadAdvisories(t.Context(), api.ImportAdvisories{Label: "feed"}, strings.NewReader(burnt), quiet); err != nil {
		t.Fatal(err)
	}
	if facts, err := in.admin.CheckPackage(t.Context(), "node", "bad-name", "1.0.0"); err != nil || len(facts.Malware) != 1 {
		t.Errorf("what was uploaded does not count: %+v %v", facts, err)
	}
	names := strings.NewReader("requests\nurllib3\n")
	if _, err := in.admin.UploadAdvisories(t.Context(), api.ImportAdvisories{Label: "names", Popular: "python"}, names, quiet); err != nil {
		t.Error(err)
	}
	if _, err := in.client.ImportAdvisories(t.Context(), api.ImportAdvisories{Path: record(t, burnt), Label: "feed"}, quiet); err != nil {
		t.Errorf("the host's own import of the label that a token had put: %v", err)
	}
	status, err := in.admin.Advisories(t.Context())
	if err != nil || len(status.Sources) != 2 || strings.Contains(fmt.Sprint(status), os.TempDir()) {
		t.Errorf("a token sees files of the host: %+v %v", status, err)
	}
	done, err = in.admin.UploadAdvisories(t.Context(), api.ImportAdvisories{Label: "feed"}, strings.NewReader(burnt), quiet)
	if err != nil || strings.Contains(recorded(done, err), os.TempDir()) {
		t.Errorf("a token is told which file of the host it replaces: %s", recorded(done, err))
	}
	for name, content := range map[string]io.Reader{"garbage": strings.NewReader("{"), "nothing": strings.NewReader(""), "half": io.MultiReader(strings.NewReader("{"), failing{})} {
		done, err := in.admin.UploadAdvisories(t.Context(), api.ImportAdvisories{Label: "bad"}, content, quiet)
		if err == nil || strings.Contains(recorded(done, err), in.dir) {
			t.Errorf("%s: %s", name, recorded(done, err))
		}
	}
	// Whose body breaks off in the middle does not wait for the answer: its upload goes a little later.
	look, late := time.NewTicker(5*time.Millisecond), time.NewTimer(time.Minute)
	defer look.Stop()
	defer late.Stop()
	for {
		left, err := filepath.Glob(filepath.Join(in.dir, "advisory", ".upload-*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
		select {
		case <-look.C:
		case <-late.C:
			t.Fatalf("uploads are left: %v", left)
		}
	}
}
