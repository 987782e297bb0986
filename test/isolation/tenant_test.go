package isolation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// inside is where the talker is in a sandbox.
const inside = "/var/tmp/talker"

// tenant is a token, and a sandbox of it with a talker inside.
type tenant struct {
	*house
	name, secret string
	law          law
	tokenID      string
	announcing   string // the secret of a token that announces templates
	api          *client.Client
	box          api.Sandbox
	runs         []string // of its sandboxes, one after another

	talk *client.Attachment
	said *json.Decoder // of what the talker says
}

// pair is a sender and a receiver under one law.
type pair struct {
	sender, receiver *tenant
}

// pair is the one under a law, which is made at its first use.
func (h *house) pair(of law) *pair {
	h.t.Helper()
	if h.pairs[of] == nil {
		h.pairs[of] = &pair{h.newTenant("sender", of), h.newTenant("receiver", of)}
	}
	return h.pairs[of]
}

// renew gives both new sandboxes.
func (p *pair) renew(ctx context.Context) {
	p.sender.t.Helper()
	p.sender.renew(ctx)
	p.receiver.renew(ctx)
}

func (h *house) newTenant(role string, of law) *tenant {
	h.t.Helper()
	n := &tenant{house: h, name: role + "-" + string(of), law: of}
	n.renew(h.t.Context())
	return n
}

// makeToken gives the tenant a token of its own, a new one each time: one has so many places
// in the queue of approvals.
func (n *tenant) makeToken(ctx context.Context) {
	n.t.Helper()
	made, err := n.admin.MakeToken(ctx, api.MakeToken{
		Name: fmt.Sprintf("%s-%d", n.name, len(n.runs)), Policy: string(n.law), Policies: []string{string(calling)}, Quota: api.Quota{Sandboxes: 2},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.secret, n.tokenID = made.Secret, made.ID
}

// connect opens the client, at the address that the daemon has now.
func (n *tenant) connect() {
	n.t.Helper()
	var err error
	if n.api, err = client.Open(client.Remote{URL: n.url, Token: n.secret}); err != nil {
		n.t.Fatal(err)
	}
}

// renew gives the tenant a new token, and a new sandbox with a talker.
func (n *tenant) renew(ctx context.Context) {
	n.t.Helper()
	if n.talk != nil {
		_ = n.talk.Close()
		if err := n.api.DestroySandbox(ctx, n.box.ID); err != nil {
			n.t.Fatal(err)
		}
	}
	n.makeToken(ctx)
	n.connect()
	var err error
	if n.box, err = n.api.CreateSandbox(ctx, api.CreateSandbox{Linger: true}); err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	n.runs = append(n.runs, n.box.Run)
	program, err := os.Open(n.talkerPath)
	if err != nil {
		n.t.Fatal(err)
	}
	defer program.Close()
	if _, err := n.api.WriteFile(ctx, n.box.ID, client.File{Path: inside}, program); err != nil {
		n.t.Fatal(err)
	}
	n.startTalker(ctx)
}

// startTalker starts the program inside, and attaches to it.
func (n *tenant) startTalker(ctx context.Context) {
	n.t.Helper()
	started, err := n.api.StartCommand(ctx, n.box.ID, api.StartCommand{Argv: []string{"sh", "-c", "cp " + inside + " /tmp/talker && chmod 755 /tmp/talker && exec /tmp/talker"}, Stdin: true})
	if err != nil {
		n.t.Fatal(err)
	}
	if n.talk, err = n.api.Attach(ctx, n.box.ID, started.ID, 0); err != nil {
		n.t.Fatal(err)
	}
	from, to := io.Pipe()
	n.said = json.NewDecoder(from)
	attached := n.talk
	safego.Go(func() {
		for event, err := range attached.Events() {
			switch {
			case err != nil:
				_ = to.CloseWithError(err)
				return
			case event.Exit != nil:
				_ = to.CloseWithError(fmt.Errorf("the talker ended with %d", event.Exit.Code))
				return
			}
			os.Stderr.Write(event.Stderr)
			if _, err := to.Write(event.Stdout); err != nil {
				return
			}
		}
	})
}

// ask is what a talker can be told to do; see talker.
type ask struct {
	Get     string   `json:"get,omitempty"`
	Resolve string   `json:"resolve,omitempty"`
	Run     []string `json:"run,omitempty"`
	Spin    int      `json:"spin,omitempty"`
	Anew    bool     `json:"anew,omitempty"`
	Method  string   `json:"method,omitempty"`
	Body    string   `json:"body,omitempty"`
}

// within has the talker do something inside of the sandbox.
func (n *tenant) within(one ask) (Observation, error) {
	line, err := json.Marshal(one)
	if err != nil {
		return Observation{}, err
	}
	if _, err := n.talk.Write(append(line, '\n')); err != nil {
		return Observation{}, err
	}
	var got struct {
		Text  string
		Nanos int64
		Error string
	}
	if err := n.said.Decode(&got); err != nil {
		return Observation{}, err
	}
	if got.Error != "" {
		return Observation{}, fmt.Errorf("%s: %+v: %s", n.name, one, got.Error)
	}
	return Observation{got.Text, time.Duration(got.Nanos)}, nil
}

// page asks the registry for a package's page from inside.
func (n *tenant) page(name string) (Observation, error) {
	return n.within(ask{Get: "https://" + registryHost + "/simple/" + name + "/"})
}

// file asks the registry for a package's file from inside.
func (n *tenant) file(name string) (Observation, error) {
	return n.within(ask{Get: "https://" + registryHost + "/files/" + name + "-1.0-py3-none-any.whl"})
}

// call makes a request of the daemon's API with the tenant's token.
func (n *tenant) call(ctx context.Context, method, path string, body any) (Observation, error) {
	return n.callWith(ctx, n.secret, method, path, body)
}

// callWith calls with another token.
func (n *tenant) callWith(ctx context.Context, secret, method, path string, body any) (Observation, error) {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return Observation{}, err
		}
		sent = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, n.url+path, sent)
	if err != nil {
		return Observation{}, err
	}
	r.Header.Set("X-API-Key", secret)
	r.Header.Set("Content-Type", "application/json")
	began := time.Now()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return Observation{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	took := time.Since(began)
	answer.Header.Del("Date")
	answer.Header.Del("Content-Length") // which tells how many digits a time in the answer has
	return Observation{fmt.Sprintf("%s %v\n%s", answer.Status, answer.Header, text), took}, err
}

// records is how many records the log has of the tenant's sandboxes: the host's own count
// of what it did.
func (n *tenant) records(ctx context.Context, t *testing.T, kind, outcome string) int {
	t.Helper()
	count := 0
	for _, run := range n.runs {
		filter := client.RecordFilter{Run: run}
		if kind != "" {
			filter.Kinds = []string{kind}
		}
		if outcome != "" {
			filter.Outcomes = strings.Fields(outcome)
		}
		for _, err := range n.admin.Records(ctx, filter) {
			if err != nil {
				t.Fatal(err)
			}
			count++
		}
	}
	return count
}
