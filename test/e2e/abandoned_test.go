package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// sentRecord is what the log says of a file that was sent.
type sentRecord struct {
	Seq     uint64            `json:"seq"`
	Outcome string            `json:"outcome"`
	Size    int64             `json:"size"`
	Reason  string            `json:"reason"`
	Detail  map[string]string `json:"detail"`
}

// sent are the records of files that were sent to a sandbox.
func (in *installation) sent(sandbox string) (all []sentRecord) {
	in.t.Helper()
	for line, err := range in.Client.Records(in.t.Context(), client.RecordFilter{Sandbox: sandbox, Outcomes: []string{"served", "aborted"}}) {
		var r sentRecord
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err != nil {
			in.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// aborted waits for the record of a download that did not come to its end.
func (in *installation) aborted(sandbox string, count int) sentRecord {
	in.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		var last sentRecord
		found := 0
		all := in.sent(sandbox)
		for _, r := range all {
			if r.Outcome == "aborted" {
				last = r
				found++
			}
		}
		if found >= count {
			return last
		}
		if time.Now().After(deadline) {
			in.t.Fatalf("there are %d aborted downloads on record, want %d: %+v", found, count, all)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestAnAbandonedDownloadIsOnRecord: real clients in a real sandbox go away after
// a hundred kilobytes of many megabytes, one by its end and one killed; then the
// gateway is killed under a third.
func TestAnAbandonedDownloadIsOnRecord(t *testing.T) {
	t.Parallel()
	const size, host = int64(48 << 20), "index.example"
	wheel, digest := bigWheel(t, size)
	l := liar.New(t, host)
	page := fmt.Sprintf(`<!DOCTYPE html><html><body><a href="/files/big-1.0-py3-none-any.whl#sha256=%s">big-1.0-py3-none-any.whl</a></body></html>`, digest)
	l.Script(host+"/simple/big/", liar.Body("text/html", []byte(page)))
	l.Script(host+"/files/big-1.0-py3-none-any.whl", func(_ *liar.Server, w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, wheel) })
	in := start(t, localUpstream(t, l, host))
	env := in.create("debian", "name: big\nallowed_packages: { python: [ { name: big } ] }\n")
	const get = `
import os, signal, sys, time, urllib.request
answer = urllib.request.urlopen("https://` + host + `/files/big-1.0-py3-none-any.whl")
want = int(sys.argv[1])
got = 0
while got < want:
    got += len(answer.read(min(65536, want - got)))
print(got, flush=True)
{"ends": lambda: os._exit(0), "killed": lambda: os.kill(os.getpid(), signal.SIGKILL), "waits": lambda: time.sleep(3600)}[sys.argv[2]]()
`
	info, err := os.Stat(wheel)
	if err != nil {
		t.Fatal(err)
	}
	whole := strconv.FormatInt(info.Size(), 10)
	if got := in.run(env, "python3", "-c", get, whole, "ends"); got.Stdout != whole+"\n" {
		t.Fatalf("the control got %q: %s", got.Stdout, got.Stderr)
	}
	for i, how := range []string{"ends", "killed"} {
		in.run(env, "python3", "-c", get, "100000", how)
		r := in.aborted(env.ID, i+1)
		if n, err := strconv.ParseInt(r.Detail["sent_bytes"], 10, 64); err != nil || n < 100_000 || n > size/2 {
			t.Errorf("a client that %s: sent_bytes is %q of %d", how, r.Detail["sent_bytes"], r.Size)
		}
	}
	waiting, err := in.Client.StartCommand(t.Context(), env.ID, api.StartCommand{Argv: []string{"python3", "-c", get, "100000", "waits"}})
	if err != nil {
		t.Fatal(err)
	}
	at, err := in.Client.Attach(t.Context(), env.ID, waiting.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	for event, err := range at.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if len(event.Stdout) > 0 {
			break // it has its hundred kilobytes, and waits
		}
	}
	if err := syscall.Kill(in.roles(t)["gateway"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if r := in.aborted(env.ID, 3); r.Detail["sent_bytes"] != "unknown" || r.Reason == "" {
		t.Errorf("under the killed gateway: %+v", r)
	}
	ends := map[string]int{}
	for _, r := range in.sent(env.ID) {
		ends[r.Outcome]++
	}
	if ends["served"] != 4 || ends["aborted"] != 3 {
		t.Errorf("the records are %v, want four served and three of them aborted", ends)
	}
}

// TestWhatIsRefusedMeanwhileIsSentNoFurther: a client in a real sandbox has a
// part of a file when an advisory against it is imported, another when a policy that
// refuses it is put to the live runs.
func TestWhatIsRefusedMeanwhileIsSentNoFurther(t *testing.T) {
	t.Parallel()
	const size, host = int64(48 << 20), "index.example"
	wheel, digest := bigWheel(t, size)
	l := liar.New(t, host)
	page := fmt.Sprintf(`<!DOCTYPE html><html><body><a href="/files/big-1.0-py3-none-any.whl#sha256=%s">big-1.0-py3-none-any.whl</a></body></html>`, digest)
	l.Script(host+"/simple/big/", liar.Body("text/html", []byte(page)))
	l.Script(host+"/files/big-1.0-py3-none-any.whl", func(_ *liar.Server, w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, wheel) })
	in := start(t, localUpstream(t, l, host))
	put := func(document string, live bool) api.NamedPolicy {
		t.Helper()
		p, err := in.Client.PutPolicy(t.Context(), "data", api.PutPolicy{Document: []byte(document), ApplyToLive: live})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const wide = "name: wide\nallowed_packages: { python: [ { name: big } ] }\n"
	put(wide, false)
	const get = `
import os, pathlib, time, urllib.request
answer = urllib.request.urlopen("https://` + host + `/files/big-1.0-py3-none-any.whl")
got = len(answer.read(100000))
print("begun", flush=True)
while not pathlib.Path("/tmp/go").exists():
    time.sleep(0.02)
try:
    while chunk := answer.read(65536):
        got += len(chunk)
except Exception as error:
    print(type(error).__name__)
print(got)
`
	for name, refuse := range map[string]func(){
		"an advisory": func() {
			path := filepath.Join(t.TempDir(), "MAL-0000-1.json")
			record := `{"id":"MAL-0000-1","modified":"2026-01-01T00:00:00Z","affected":[{"package":{"ecosystem":"PyPI","name":"big"},"versions":["1.0"]}]}`
			if err := os.WriteFile(path, []byte(record), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := in.Client.ImportAdvisories(t.Context(), api.ImportAdvisories{Path: path, Label: "mine"}, func(api.AdvisoryEvent) {}); err != nil {
				t.Fatal(err)
			}
		},
		"a policy": func() {
			if p := put("name: narrow\nblocked_packages: { python: [ { name: big } ] }\nallowed_packages: { python: [ { name: big } ] }\n", true); p.Narrowed == 0 || p.Narrowed != p.Live {
				t.Errorf("the policy that was put: %+v", p)
			}
		},
		"nothing": func() {},
	} {
		t.Run(name, func(t *testing.T) {
			put(wide, false)
			defer func() { _ = in.Client.RemoveAllAdvisories(t.Context()) }()
			sb, err := in.Client.CreateSandbox(t.Context(), api.CreateSandbox{Template: "debian", Policy: api.Policy{Name: "data"}, Linger: true})
			if err != nil {
				t.Fatal(err)
			}
			cmd, err := in.Client.StartCommand(t.Context(), sb.ID, api.StartCommand{Argv: []string{"python3", "-c", get}})
			if err != nil {
				t.Fatal(err)
			}
			at, err := in.Client.Attach(t.Context(), sb.ID, cmd.ID, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer at.Close()
			out := ""
			for event, err := range at.Events() {
				if err != nil {
					t.Fatal(err)
				}
				out += string(event.Stdout)
				if out == "begun\n" {
					refuse()
					in.run(sb, "touch", "/tmp/go")
					out += "and then\n"
				}
				if event.Exit != nil {
					break
				}
			}
			info, err := os.Stat(wheel)
			if err != nil {
				t.Fatal(err)
			}
			whole := out == fmt.Sprintf("begun\nand then\n%d\n", info.Size())
			if whole != (name == "nothing") {
				t.Errorf("the client said %q", out)
			}
			if name != "nothing" {
				if r := in.aborted(sb.ID, 1); r.Detail["sent_bytes"] == "unknown" {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}
