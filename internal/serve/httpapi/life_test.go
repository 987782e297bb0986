package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// TestLife: what a token's sandbox goes through, each step as the client sees it.
func TestLife(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	c, tok := in.as(token.Grant{Name: "ann"})
	asked := api.CreateSandbox{Labels: map[string]string{"team": "ml"}, Lifetime: api.Lifetime{TTLSeconds: 3600, AtEnd: "pause"}, Linger: true}
	box := in.create(c, asked)
	if box.Token != tok.ID || box.TokenName != "ann" || box.State != "running" || box.Lifetime != asked.Lifetime || box.Labels["team"] != "ml" {
		t.Errorf("%+v", box)
	}
	req := in.manager.Requests()[0]
	if req.Owner.Token != tok.ID || req.Lifetime.Then != sandbox.ThenPause || req.Lifetime.TTL != time.Hour || req.User != "token ann" || req.Policy == nil {
		t.Errorf("the manager was asked for %+v", req)
	}
	if box, err := c.Pause(ctx, box.ID); err != nil || box.State != "paused" {
		t.Error(box.State, err)
	}
	if _, err := c.Pause(ctx, box.ID); client.StatusOf(err) != http.StatusConflict {
		t.Error(err)
	}
	in.manager.RefuseResume(box.ID, fault.New(fault.ErrForbidden, "colourama 1.0 is known to be malicious now"))
	if _, err := c.Resume(ctx, box.ID); client.StatusOf(err) != http.StatusForbidden || !strings.Contains(err.Error(), "colourama") {
		t.Error(err)
	}
	in.manager.RefuseResume(box.ID, nil)
	if box, err := c.Resume(ctx, box.ID); err != nil || box.State != "running" {
		t.Error(box.State, err)
	}
	if _, err := c.SetLifetime(ctx, box.ID, api.Lifetime{IdleSeconds: 60}); err != nil {
		t.Error(err)
	}
	for _, l := range []api.Lifetime{{TTLSeconds: -1}, {IdleSeconds: 1 << 60}, {AtEnd: "explode"}} {
		if _, err := c.SetLifetime(ctx, box.ID, l); client.StatusOf(err) != http.StatusBadRequest {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if usage, err := c.Usage(ctx, box.ID); err != nil || usage.CPUPercent != 12.5 {
		t.Error(usage, err)
	}
	if got, err := client.Controls(ctx, c, box.ID); err != nil || got.Holds || got.Sandbox != box.ID || got.Limits.Pids != 512 || got.TwinHas.Pids != 48 ||
		len(got.Controls) != 2 || got.Controls[0].Outcome != "proved" || got.Controls[1].Outcome != "failed" || got.Controls[1].Says != "root" {
		t.Errorf("the controls are %+v (%v)", got, err)
	}
	if err := c.DestroySandbox(ctx, box.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.Sandbox(ctx, box.ID); client.StatusOf(err) != http.StatusNotFound {
		t.Error(err)
	}
}

// TestACopyEndsAsItsSource: unless its maker says otherwise; a lease says nothing of that, and one that is not asked for is the manager's to give.
func TestACopyEndsAsItsSource(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	c, _ := in.as(token.Grant{Name: "ann"})
	box := in.create(c, api.CreateSandbox{Lifetime: api.Lifetime{TTLSeconds: 3600, IdleSeconds: 60, AtEnd: "pause", LeaseSeconds: 30}})
	for _, asked := range []api.Lifetime{{}, {LeaseSeconds: 60}, {TTLSeconds: 10}} {
		want := asked
		if asked.TTLSeconds == 0 {
			want = api.Lifetime{TTLSeconds: 3600, IdleSeconds: 60, AtEnd: "pause", LeaseSeconds: asked.LeaseSeconds}
		}
		forks, err := c.Fork(ctx, box.ID, api.ForkSandbox{Lifetime: asked})
		if err != nil || len(forks) != 1 || forks[0].Sandbox == nil || forks[0].Sandbox.Lifetime != want {
			t.Errorf("asked for %+v: %+v %v", asked, forks[0].Sandbox, err)
		}
	}
}

// TestStuck: who has a sandbox that could not be taken away is told.
func TestStuck(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	c, _ := in.as(token.Grant{Name: "ann"})
	id := in.create(c, api.CreateSandbox{}).ID
	if one, err := c.Sandbox(ctx, id); err != nil || one.Stuck != nil {
		t.Errorf("one that nobody destroys: %+v (%v)", one.Stuck, err)
	}
	box, err := in.manager.Box(id)
	if err != nil {
		t.Fatal(err)
	}
	want := sandbox.Stuck{Tries: 3, Since: time.Now().UTC().Truncate(time.Second), Next: time.Now().UTC().Truncate(time.Second).Add(time.Minute)}
	box.Become(sandbox.Destroying)
	box.Sticks(want)
	one, err := c.Sandbox(ctx, id)
	if err != nil || one.State != "destroying" || one.Stuck == nil || sandbox.Stuck(*one.Stuck) != want {
		t.Errorf("it is %s, and %+v (%v)", one.State, one.Stuck, err)
	}
	if all, err := c.Sandboxes(ctx); err != nil || len(all) != 1 || all[0].Stuck == nil {
		t.Errorf("the list has %+v (%v)", all, err)
	}
}

// TestCopies: snapshots have owners and names, and forks succeed one by one.
func TestCopies(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	c, tok := in.as(token.Grant{Name: "ann", Quota: token.Quota{Sandboxes: 3}})
	box := in.create(c, api.CreateSandbox{})
	snap, err := c.MakeSnapshot(ctx, box.ID, api.MakeSnapshot{Name: "warm"})
	if err != nil || snap.Contents != "memory" || snap.Sandbox != box.ID || snap.Token != tok.ID {
		t.Fatal(snap, err)
	}
	for _, wrong := range []api.MakeSnapshot{{Contents: "soul"}, {Name: "../x"}, {Name: strings.Repeat("x", 200)}} {
		if _, err := c.MakeSnapshot(ctx, box.ID, wrong); client.StatusOf(err) != http.StatusBadRequest {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if got, err := c.Snapshot(ctx, "warm"); err != nil || got.ID != snap.ID {
		t.Error(got, err)
	}
	forks, err := c.Fork(ctx, box.ID, api.ForkSandbox{Count: 3})
	if err != nil || len(forks) != 3 || forks[0].Sandbox == nil || forks[0].Sandbox.Parent != box.ID || forks[2].Error == nil || forks[2].Error.Status != http.StatusTooManyRequests {
		t.Fatalf("%+v %v", forks, err)
	}
	if _, err := c.Fork(ctx, box.ID, api.ForkSandbox{Count: 1000}); client.StatusOf(err) != http.StatusBadRequest {
		t.Error(err)
	}
	bob, _ := in.as(token.Grant{Name: "bob"})
	if _, err := bob.Snapshot(ctx, snap.ID); client.StatusOf(err) != http.StatusNotFound {
		t.Error(err)
	}
	if err := bob.RemoveSnapshot(ctx, "warm"); client.StatusOf(err) != http.StatusNotFound {
		t.Error(err)
	}
	if all, err := bob.Snapshots(ctx); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
	theirs, err := bob.MakeSnapshot(ctx, in.create(bob, api.CreateSandbox{}).ID, api.MakeSnapshot{Name: "warm"})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.host.RemoveSnapshot(ctx, "warm"); client.StatusOf(err) != http.StatusConflict || !strings.Contains(err.Error(), "2 tokens") {
		t.Errorf("a name that two have: %v", err)
	}
	if got, err := bob.Snapshot(ctx, "warm"); err != nil || got.ID != theirs.ID {
		t.Error(got, err)
	}
	if err := in.host.RemoveSnapshot(ctx, theirs.ID); err != nil {
		t.Error(err)
	}
	if err := in.host.RemoveSnapshot(ctx, "warm"); err != nil {
		t.Error(err)
	}
	if all, err := c.Snapshots(ctx); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
}

// TestRefusedByCaller: what the caller refuses is not started, and needs a rule and a reason.
func TestRefusedByCaller(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	ann, _ := in.as(token.Grant{Name: "ann"})
	bob, _ := in.as(token.Grant{Name: "bob"})
	box := in.create(ann, api.CreateSandbox{})
	whole := &api.RefusedByCaller{Rule: "no", Reason: "not that"}
	for _, c := range []struct {
		by      *client.Client
		refused *api.RefusedByCaller
		status  int
	}{
		{ann, nil, 0}, // the positive control
		{ann, whole, http.StatusForbidden},
		{ann, &api.RefusedByCaller{Rule: "no"}, http.StatusBadRequest},
		{ann, &api.RefusedByCaller{Reason: "not that"}, http.StatusBadRequest},
		{bob, whole, http.StatusNotFound},
	} {
		_, err := c.by.StartCommand(ctx, box.ID, api.StartCommand{Argv: []string{"true"}, Refused: c.refused})
		if client.StatusOf(err) != c.status || (err == nil) != (c.status == 0) {
			t.Errorf("%+v: %v", c.refused, err)
		}
		if c.status == http.StatusForbidden && !strings.Contains(err.Error(), "not that (rule caller.no, request") {
			t.Errorf("the refusal says %v", err)
		}
	}
}

// TestOthersThings: of what is another's a token learns nothing, not even that it
// is there.
func TestOthersThings(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	ann, _ := in.as(token.Grant{Name: "ann"})
	bob, _ := in.as(token.Grant{Name: "bob"})
	admin, _ := in.as(token.Grant{Name: "root", Admin: true})
	box := in.create(ann, api.CreateSandbox{})
	command, err := ann.StartCommand(ctx, box.ID, api.StartCommand{Argv: []string{"sleep", "100"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(c *client.Client, id string) error{
		"get":      func(c *client.Client, id string) error { _, err := c.Sandbox(ctx, id); return err },
		"pause":    func(c *client.Client, id string) error { _, err := c.Pause(ctx, id); return err },
		"resume":   func(c *client.Client, id string) error { _, err := c.Resume(ctx, id); return err },
		"lifetime": func(c *client.Client, id string) error { _, err := c.SetLifetime(ctx, id, api.Lifetime{}); return err },
		"controls": func(c *client.Client, id string) error { _, err := client.Controls(ctx, c, id); return err },
		"usage":    func(c *client.Client, id string) error { _, err := c.Usage(ctx, id); return err },
		"snapshot": func(c *client.Client, id string) error {
			_, err := c.MakeSnapshot(ctx, id, api.MakeSnapshot{})
			return err
		},
		"fork": func(c *client.Client, id string) error { _, err := c.Fork(ctx, id, api.ForkSandbox{}); return err },
		"start": func(c *client.Client, id string) error {
			_, err := c.StartCommand(ctx, id, api.StartCommand{Argv: []string{"id"}})
			return err
		},
		"command": func(c *client.Client, id string) error { _, err := c.Command(ctx, id, command.ID); return err },
		"attach": func(c *client.Client, id string) error {
			link, err := c.Attach(ctx, id, command.ID, 0)
			if err == nil {
				err = link.Close()
			}
			return err
		},
		"read": func(c *client.Client, id string) error {
			_, err := c.ReadFile(ctx, id, client.File{Path: "x"})
			return err
		},
		"write": func(c *client.Client, id string) error {
			_, err := c.WriteFile(ctx, id, client.File{Path: "x"}, strings.NewReader("x"))
			return err
		},
		"stat": func(c *client.Client, id string) error {
			_, err := c.StatFile(ctx, id, client.File{Path: "x"})
			return err
		},
		"remove": func(c *client.Client, id string) error { return c.RemoveFile(ctx, id, client.File{Path: "x"}) },
		"mkdir": func(c *client.Client, id string) error {
			_, err := c.MakeDirectory(ctx, id, client.File{Path: "x"})
			return err
		},
		"move": func(c *client.Client, id string) error {
			_, err := c.MoveFile(ctx, id, client.File{Path: "x"}, "y")
			return err
		},
		"kill": func(c *client.Client, id string) error { return c.DestroySandbox(ctx, id) },
	} {
		theirs, none := ask(bob, box.ID), ask(bob, "sb0")
		if client.StatusOf(theirs) != http.StatusNotFound || strings.ReplaceAll(theirs.Error(), box.ID, "sb0") != none.Error() {
			t.Errorf("%s: %v; of none it is %v", name, theirs, none)
		}
	}
	for who, want := range map[*client.Client]int{ann: 1, bob: 0, admin: 1, in.host: 1} {
		if boxes, err := who.Sandboxes(ctx); err != nil || len(boxes) != want {
			t.Error(boxes, err)
		}
	}
	if err := admin.DestroySandbox(ctx, box.ID); err != nil {
		t.Error(err)
	}
}

// TestARevokedTokenEndsStreams: nobody hears a word more by a token that is revoked.
func TestARevokedTokenEndsStreams(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	ann, tok := in.as(token.Grant{Name: "ann"})
	box := in.create(ann, api.CreateSandbox{})
	command, err := ann.StartCommand(ctx, box.ID, api.StartCommand{Argv: []string{"sleep", "100"}})
	if err != nil {
		t.Fatal(err)
	}
	link, err := ann.Attach(ctx, box.ID, command.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	in.manager.happens(sandbox.Event{Time: time.Now().UTC(), Sandbox: box.ID, Run: "r", Token: tok.ID, To: sandbox.Running})
	heard, over := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		for _, err := range ann.Events(ctx, "", 0) {
			if err != nil {
				over <- err
				return
			}
			heard <- struct{}{}
		}
		over <- nil
	}()
	<-heard // it is on
	if _, err := in.host.RevokeToken(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	for _, err := range link.Events() {
		if err != nil {
			break
		}
	}
	<-over
	if _, err := in.host.Command(ctx, box.ID, command.ID); err != nil {
		t.Errorf("the command: %v", err)
	}
}

// TestWhatATokenMayNotAsk: host paths, policies of its own, and policies of others
// are refused; so is what is no name (C-LI-10).
func TestWhatATokenMayNotAsk(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	for name, text := range map[string]string{"data": "packages:\n  default: hold\n", "loose": "packages:\n  default: allow\n"} {
		if _, err := in.host.PutPolicy(ctx, name, api.PutPolicy{Document: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	c, _ := in.as(token.Grant{Name: "ann", Policies: []string{"data"}})
	admin, _ := in.as(token.Grant{Name: "root", Admin: true})
	mount := []api.Mount{{Source: "/", Destination: "/host", ReadWrite: true}}
	for name, refused := range map[string]struct {
		req    api.CreateSandbox
		status int
	}{
		"mount":        {api.CreateSandbox{Mounts: mount}, 403},
		"document":     {api.CreateSandbox{Policy: api.Policy{Document: []byte("packages:\n  default: allow\n")}}, 403},
		"source":       {api.CreateSandbox{Policy: api.Policy{Source: "/etc/passwd"}}, 403},
		"other policy": {api.CreateSandbox{Policy: api.Policy{Name: "loose"}}, 403},
		"both":         {api.CreateSandbox{Policy: api.Policy{Name: "data", Document: []byte("x")}}, 400},
		"template":     {api.CreateSandbox{Template: "../../etc"}, 400},
		"the host":     {api.CreateSandbox{Template: "host"}, 403},
		"image":        {api.CreateSandbox{Template: "registry.example/img:latest"}, 400},
		"engine":       {api.CreateSandbox{Engine: "none --network=host"}, 400},
		"isolation":    {api.CreateSandbox{Isolation: "none --network=host"}, 400},
		"both words":   {api.CreateSandbox{Isolation: "auto", Engine: "auto"}, 400},
		"copy and one": {api.CreateSandbox{Snapshot: "warm", Isolation: "auto"}, 400},
		"snapshot":     {api.CreateSandbox{Snapshot: "/var/lib"}, 400},
		"snapshot of":  {api.CreateSandbox{Snapshot: "warm", Template: "debian"}, 400},
		"env":          {api.CreateSandbox{Env: map[string]string{"A\nLD_PRELOAD": "x"}}, 400},
		"label":        {api.CreateSandbox{Labels: map[string]string{"a b": "x"}}, 400},
		"own label":    {api.CreateSandbox{Labels: map[string]string{"cofferdam.policy": "loose"}}, 400},
		"label value":  {api.CreateSandbox{Labels: map[string]string{"a": "\x1b[31m"}}, 400},
		"lifetime":     {api.CreateSandbox{Lifetime: api.Lifetime{TTLSeconds: -5}}, 400},
	} {
		if _, err := c.CreateSandbox(ctx, refused.req); client.StatusOf(err) != refused.status {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := admin.CreateSandbox(ctx, api.CreateSandbox{Mounts: mount}); client.StatusOf(err) != http.StatusForbidden {
		t.Errorf("a mount over the network: %v", err)
	}
	mounting := []byte("filesystem: { host_mounts: [ { source: /srv, destination: /srv } ] }\n")
	if _, err := admin.CreateSandbox(ctx, api.CreateSandbox{Policy: api.Policy{Document: mounting}}); client.StatusOf(err) != http.StatusForbidden {
		t.Errorf("a policy that mounts, over the network: %v", err)
	}
	if _, err := admin.PutPolicy(ctx, "mounting", api.PutPolicy{Document: mounting}); client.StatusOf(err) != http.StatusForbidden {
		t.Errorf("a named policy that mounts, over the network: %v", err)
	}
	if n := len(in.manager.Requests()); n != 0 {
		t.Errorf("the manager was asked %d times", n)
	}
	for _, req := range []api.CreateSandbox{{}, {Policy: api.Policy{Name: "data"}}, {Policy: api.Policy{Name: "default"}}} {
		in.create(c, req)
	}
	in.create(admin, api.CreateSandbox{Policy: api.Policy{Name: "loose"}})
	in.create(admin, api.CreateSandbox{Policy: api.Policy{Document: []byte("packages:\n  default: allow\n")}})
	unknown := `{"image":"x","runtime_args":["--privileged"],"annotations":{}}`
	resp, err := http.Post(in.url+"/v1/sandboxes", "application/json", strings.NewReader(unknown))
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
}

// TestQuotas: what a token has used up is 429, with a time to try again where that
// helps, and one key makes one sandbox.
func TestQuotas(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	c, _ := in.as(token.Grant{Name: "ann", Quota: token.Quota{CreatesPerMinute: 2}})
	first, err := c.CreateOnce(ctx, "key-1", api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.CreateOnce(ctx, "key-1", api.CreateSandbox{}); err != nil || again.ID != first.ID {
		t.Error(again.ID, err)
	}
	if _, err := c.CreateOnce(ctx, "no key", api.CreateSandbox{}); client.StatusOf(err) != http.StatusBadRequest {
		t.Error(err)
	}
	in.create(c, api.CreateSandbox{})
	_, err = c.CreateSandbox(ctx, api.CreateSandbox{})
	if client.StatusOf(err) != http.StatusTooManyRequests {
		t.Error(err)
	}
	in.manager.FailCreate(fault.Exhausted(1500*time.Millisecond, "too many at once"))
	_, err = c.CreateSandbox(ctx, api.CreateSandbox{})
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Problem.Status != http.StatusTooManyRequests || e.RetryAfter() != 2*time.Second {
		t.Errorf("%+v", e)
	}
}

// TestRunsHaveOwners: a token can't take over another's run id, under which people
// may have approved things, nor read what another's run has installed.
func TestRunsHaveOwners(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	ann, annToken := in.as(token.Grant{Name: "ann"})
	bob, _ := in.as(token.Grant{Name: "bob"})
	root, _ := in.as(token.Grant{Name: "root", Admin: true}) // it may do much, but what was approved for another's run is not its
	box := in.create(ann, api.CreateSandbox{Run: "nightly"})
	for _, run := range []string{"nightly", "old", "hosts"} {
		for _, r := range []audit.Record{
			{Kind: audit.KindSandbox, Outcome: audit.Started, Detail: map[string]string{"token": map[string]string{"nightly": annToken.ID, "old": annToken.ID}[run]}},
			{Kind: audit.KindPackage, Outcome: audit.Installed, Ecosystem: "python", Package: "rich", InstalledVersion: "13.7.1"},
			{Kind: audit.KindPackage, Outcome: audit.Blocked, Ecosystem: "python", Package: "evil", RequestID: "rq" + run},
		} {
			r.Run, r.Sandbox = run, map[string]string{"nightly": box.ID, "old": "sbold", "hosts": "sbhost"}[run]
			if _, err := in.log.Append(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, run := range []string{"nightly", "old", "hosts"} {
		if _, err := bob.CreateSandbox(ctx, api.CreateSandbox{Run: run}); client.StatusOf(err) != http.StatusConflict {
			t.Errorf("bob makes a sandbox of the run %s: %v", run, err)
		}
		if _, err := root.CreateSandbox(ctx, api.CreateSandbox{Run: run}); client.StatusOf(err) != http.StatusConflict {
			t.Errorf("an admin's token makes a sandbox of the run %s: %v", run, err)
		}
		for name, ask := range map[string]error{
			"summary": second(bob.RunSummary(ctx, run)), "suggest": second(bob.Suggest(ctx, run)),
			"refusals": second(bob.Refusals(ctx, client.RefusalFilter{Run: run})),
			"plan":     second(bob.MakePlan(ctx, run, api.ResolvedPlan{Ecosystem: "python", Releases: []api.PlanChoice{}})),
		} {
			if client.StatusOf(ask) != http.StatusNotFound {
				t.Errorf("%s of %s: %v", name, run, ask)
			}
		}
	}
	for who, want := range map[*client.Client]map[client.RefusalFilter]string{
		ann:     {{}: "old", {Request: "rqold"}: "old", {Sandbox: "sbold"}: "old", {Run: "nightly"}: "nightly", {Request: "rqhosts"}: "", {Sandbox: "sbhost"}: ""},
		bob:     {{}: "", {Request: "rqold"}: "", {Sandbox: "sbold"}: "", {Request: "rqnone"}: ""},
		in.host: {{}: "hosts", {Request: "rqold"}: "old", {Sandbox: "sbhost"}: "hosts", {Run: "none"}: ""},
	} {
		for filter, run := range want {
			answered, err := who.Refusals(ctx, filter)
			if run == "" && client.StatusOf(err) != http.StatusNotFound {
				t.Errorf("%+v: %+v %v", filter, answered, err)
			}
			if run != "" && (err != nil || answered.Run != run || len(answered.Refusals) != 1 || answered.Refusals[0].RequestID != "rq"+run) {
				t.Errorf("%+v: %+v %v", filter, answered, err)
			}
		}
	}
	in.create(ann, api.CreateSandbox{Run: "old"})
	for who, want := range map[*client.Client][]string{ann: {"nightly", "old"}, bob: {}, in.host: {"nightly", "old", "hosts"}} {
		if diff := cmp.Diff(want, runsOf(t, who, client.InstallFilter{Limit: 1, Packages: []string{"rich"}})); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff([]string{"hosts"}, runsOf(t, in.host, client.InstallFilter{Runs: []string{"hosts"}, Outcomes: []string{"installed"}})); diff != "" {
		t.Error(diff)
	}
	if _, err := ann.Installs(ctx, client.InstallFilter{After: "x"}); client.StatusOf(err) != http.StatusBadRequest {
		t.Error(err)
	}
}

// TestInstallsTellNothingOfOthers: a token reads its records, page by page, and neither their
// numbers nor the pages tell how many others there are.
func TestInstallsTellNothingOfOthers(t *testing.T) {
	t.Parallel()
	read := func(others int) (pages int, seqs []uint64) {
		in, ctx := serve(t), t.Context()
		ann, tok := in.as(token.Grant{Name: "ann"})
		records := []audit.Record{{Kind: audit.KindSandbox, Outcome: audit.Started, Run: "hers", Sandbox: "sbhers", Detail: map[string]string{"token": tok.ID}}}
		for range 3 {
			records = append(records, audit.Record{Kind: audit.KindPackage, Outcome: audit.Blocked, Run: "hers", Sandbox: "sbhers", Ecosystem: "python", Package: "rich"})
			for range others {
				records = append(records, audit.Record{Kind: audit.KindPackage, Outcome: audit.Blocked, Run: "other", Sandbox: "sbother", Ecosystem: "python", Package: "rich"})
			}
		}
		for _, r := range records {
			if _, err := in.log.Append(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		for f := (client.InstallFilter{Limit: 1}); ; pages++ {
			page, err := ann.Installs(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range page.Installs {
				var record struct{ Seq uint64 }
				if err := json.Unmarshal(text, &record); err != nil {
					t.Fatal(err)
				}
				seqs = append(seqs, record.Seq)
			}
			if page.Next == "" {
				return pages + 1, seqs
			}
			f.After = page.Next
		}
	}
	alone, _ := read(0)
	beside, seqs := read(30)
	if len(seqs) != 3 || beside != alone {
		t.Errorf("3 records come on %d pages beside others, and on %d alone: %v", beside, alone, seqs)
	}
	if slices.ContainsFunc(seqs, func(seq uint64) bool { return seq < 1000 }) {
		t.Errorf("a token is told the numbers of all records: %v", seqs)
	}
}

func second[T any](_ T, err error) error { return err }

// runsOf goes through all pages of installs.
func runsOf(t *testing.T, c *client.Client, f client.InstallFilter) []string {
	t.Helper()
	runs := []string{}
	for {
		page, err := c.Installs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range page.Installs {
			_, rest, _ := strings.Cut(string(text), `"agent_run_id":"`)
			run, _, _ := strings.Cut(rest, `"`)
			runs = append(runs, run)
		}
		if page.Next == "" {
			return runs
		}
		f.After = page.Next
	}
}

// TestPages: a list comes in pages that neither repeat nor leave out what is there
// all the time.
func TestPages(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	var ids []string
	for i := range 7 {
		ids = append(ids, in.create(in.host, api.CreateSandbox{Labels: map[string]string{"n": strconv.Itoa(i), "odd": strconv.FormatBool(i%2 == 1)}}).ID)
	}
	var got []string
	f := client.SandboxFilter{Limit: 2}
	for {
		page, err := in.host.SandboxPage(ctx, f)
		if err != nil || len(page.Sandboxes) > 2 {
			t.Fatal(page, err)
		}
		for _, b := range page.Sandboxes {
			got = append(got, b.ID)
		}
		if page.Next == "" {
			break
		}
		if f.After == "" { // what goes meanwhile moves nothing
			if err := in.host.DestroySandbox(ctx, ids[0]); err != nil {
				t.Fatal(err)
			}
		}
		f.After = page.Next
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Error(diff)
	}
	if _, err := in.host.Pause(ctx, ids[3]); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		filter client.SandboxFilter
		want   int
	}{
		"paused":      {client.SandboxFilter{States: []string{"paused"}}, 1},
		"either":      {client.SandboxFilter{States: []string{"paused", "running"}}, 6},
		"odd":         {client.SandboxFilter{Labels: map[string]string{"odd": "true"}}, 3},
		"odd and one": {client.SandboxFilter{Labels: map[string]string{"odd": "true", "n": "1"}}, 1},
		"run":         {client.SandboxFilter{Runs: []string{"none"}}, 0},
	} {
		if boxes, err := in.host.FindSandboxes(ctx, c.filter); err != nil || len(boxes) != c.want {
			t.Errorf("%s: %d, %v", name, len(boxes), err)
		}
	}
	for _, query := range []string{"stat=running", "limit=x", "after=x", "label=odd"} {
		resp := in.get("/v1/sandboxes?"+query, "")
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", query, resp.StatusCode)
		}
	}
	for _, f := range []client.SandboxFilter{{After: "x"}, {Labels: map[string]string{"": ""}}} {
		boxes, err := in.host.FindSandboxes(ctx, f)
		if client.StatusOf(err) != http.StatusBadRequest && len(boxes) > 0 {
			t.Errorf("%+v: %v %v", f, boxes, err)
		}
	}
}

// TestPagesOfSandboxesHaveAnEnd: a page has no more sandboxes than it may have bytes, and all are on one.
func TestPagesOfSandboxesHaveAnEnd(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	large := map[string]string{}
	for i := range 60 {
		large["n"+strconv.Itoa(i)] = strings.Repeat("x", 1<<10)
	}
	const made = 40
	for range made {
		in.create(in.host, api.CreateSandbox{Labels: large})
	}
	pages, got := 0, 0
	for f := (client.SandboxFilter{}); pages == 0 || f.After != ""; pages++ {
		page, err := in.host.SandboxPage(ctx, f)
		if err != nil || len(page.Sandboxes) == 0 {
			t.Fatal(page, err)
		}
		got, f.After = got+len(page.Sandboxes), page.Next
	}
	if pages < 2 || got != made {
		t.Errorf("%d of %d sandboxes on %d pages", got, made, pages)
	}
}

func (in *serving) get(path, secret string) *http.Response {
	in.t.Helper()
	req, err := http.NewRequestWithContext(in.t.Context(), http.MethodGet, in.url+path, nil)
	if err != nil {
		in.t.Fatal(err)
	}
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		in.t.Fatal(err)
	}
	in.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// TestFiles: what is written is read again, and what fails says how.
func TestFiles(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	c, _ := in.as(token.Grant{Name: "ann"})
	box := in.create(c, api.CreateSandbox{})
	content := bytes.Repeat([]byte("0123456789abcdef"), 40_000) // several frames
	info, err := c.WriteFile(ctx, box.ID, client.File{Path: "dir/big", Mode: 0o600}, bytes.NewReader(content))
	if err != nil || info.Size != int64(len(content)) {
		t.Fatalf("%+v %v", info, err)
	}
	body, err := c.ReadFile(ctx, box.ID, client.File{Path: "dir/big"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(body)
	if _ = body.Close(); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := c.WriteFile(ctx, box.ID, client.File{Path: "dir/empty"}, strings.NewReader("")); err != nil {
		t.Error(err)
	}
	if body, err := c.ReadFile(ctx, box.ID, client.File{Path: "dir/empty"}); err != nil {
		t.Error(err)
	} else if got, err := io.ReadAll(body); err != nil || len(got) > 0 {
		t.Error(got, err)
	}
	var names []string
	for entry, err := range c.ListFiles(ctx, box.ID, client.File{Path: "."}, 2) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, entry.Kind+" "+entry.Path)
	}
	if diff := cmp.Diff([]string{"dir /home/user/dir", "file /home/user/dir/big", "file /home/user/dir/empty"}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := c.MakeDirectory(ctx, box.ID, client.File{Path: "other"}); err != nil {
		t.Error(err)
	}
	if _, err := c.MoveFile(ctx, box.ID, client.File{Path: "dir/big"}, "other/small"); err != nil {
		t.Error(err)
	}
	if info, err := c.StatFile(ctx, box.ID, client.File{Path: "other/small"}); err != nil || info.Size != int64(len(content)) {
		t.Error(info, err)
	}
	_, broken := c.WriteFile(ctx, box.ID, client.File{Path: "other/small"}, io.MultiReader(strings.NewReader("half"), failing{}))
	if broken == nil {
		t.Error("a body that broke off was taken")
	}
	if info, err := c.StatFile(ctx, box.ID, client.File{Path: "other/small"}); err != nil || info.Size != int64(len(content)) {
		t.Errorf("after a body that broke off: %+v %v", info, err)
	}
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"exists":    {second(c.MakeDirectory(ctx, box.ID, client.File{Path: "other"})), 409},
		"missing":   {second(c.StatFile(ctx, box.ID, client.File{Path: "none"})), 404},
		"no path":   {second(c.StatFile(ctx, box.ID, client.File{})), 400},
		"NUL":       {second(c.StatFile(ctx, box.ID, client.File{Path: "a\x00b"})), 400},
		"long":      {second(c.StatFile(ctx, box.ID, client.File{Path: strings.Repeat("x", 5000)})), 400},
		"read dir":  {second(c.ReadFile(ctx, box.ID, client.File{Path: "other"})), 400},
		"read none": {second(c.ReadFile(ctx, box.ID, client.File{Path: "none"})), 404},
		"list none": {firstError(ctx, c, box.ID, "none"), 404},
	} {
		if client.StatusOf(c.err) != c.want {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if err := c.RemoveFile(ctx, box.ID, client.File{Path: "other"}); err != nil {
		t.Error(err)
	}
}

func firstError(ctx context.Context, c *client.Client, box, path string) error {
	for _, err := range c.ListFiles(ctx, box, client.File{Path: path}, 1) {
		return err
	}
	return nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

// TestEvents: a token hears of its own sandboxes, from where it stood.
func TestEvents(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	c, tok := in.as(token.Grant{Name: "ann"})
	for i, owner := range []string{tok.ID, "", tok.ID, "tok-other", tok.ID} {
		in.manager.happens(sandbox.Event{Time: time.Now().UTC(), Sandbox: "sb" + strconv.Itoa(i), Run: "r", Token: owner, To: sandbox.Running})
	}
	hear := func(c *client.Client, box string, after int64, n int) (seqs []int64) {
		for e, err := range c.Events(ctx, box, after) {
			if err != nil {
				t.Fatal(err)
			}
			if seqs = append(seqs, e.Seq); len(seqs) == n {
				break
			}
		}
		return seqs
	}
	mine := hear(c, "", 0, 3)
	if got := hear(c, "", mine[0], 2); !slices.Equal(got, mine[1:]) {
		t.Errorf("after the first of %v come %v", mine, got)
	}
	if slices.ContainsFunc(mine, func(seq int64) bool { return seq <= 5 }) {
		t.Errorf("a token is told the numbers that all events have: %v", mine)
	}
	for _, err := range c.Events(ctx, "", 1<<40) {
		if client.StatusOf(err) != http.StatusBadRequest || strings.Contains(err.Error(), "newest") {
			t.Errorf("a token is told which event is the newest of all: %v", err)
		}
	}
	if got := hear(in.host, "", 2, 3); !slices.Equal(got, []int64{3, 4, 5}) {
		t.Error(got)
	}
	if got := hear(in.host, "sb3", 0, 1); !slices.Equal(got, []int64{4}) {
		t.Error(got)
	}
}

// TestTokensAndPolicies: made by the host, on record, and the secret told once.
func TestTokensAndPolicies(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	if _, err := in.host.PutPolicy(ctx, "data", api.PutPolicy{Document: []byte("packages:\n  default: hold\n")}); err != nil {
		t.Fatal(err)
	}
	if _, err := in.host.PutPolicy(ctx, "data", api.PutPolicy{Document: []byte("packages:\n  defaultt: hold\n")}); client.StatusOf(err) != http.StatusBadRequest || !strings.Contains(err.Error(), "2:") {
		t.Error(err)
	}
	for apply, want := range map[bool]int{false: 0, true: 2} {
		p, err := in.host.PutPolicy(ctx, "data", api.PutPolicy{Document: []byte("packages:\n  default: hold\n"), ApplyToLive: apply})
		if err != nil || p.Live != 2 || p.Narrowed != want {
			t.Errorf("to the live: %v: %+v, %v", apply, p, err)
		}
	}
	if p, err := in.host.Policy(ctx, "data"); err != nil || string(p.Document) != "packages:\n  default: hold\n" {
		t.Error(p, err)
	}
	if _, err := in.host.MakeToken(ctx, api.MakeToken{Name: "x", Policy: "none"}); client.StatusOf(err) != http.StatusNotFound {
		t.Error(err)
	}
	made, err := in.host.MakeToken(ctx, api.MakeToken{Name: "ci", Policy: "data", ExpiresSeconds: 60, Quota: api.Quota{Sandboxes: 2}})
	if err != nil || !strings.HasPrefix(made.Secret, "e2b_") || made.Expires.IsZero() {
		t.Fatal(made.Token, err)
	}
	ci, err := client.Open(client.Remote{URL: in.url, Token: made.Secret})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := ci.Policies(ctx); err != nil || len(p) != 1 || p[0].Name != "data" || p[0].Document != nil {
		t.Error(p, err)
	}
	if _, err := ci.Policy(ctx, "default"); client.StatusOf(err) != http.StatusNotFound {
		t.Error(err)
	}
	if err := in.host.RemovePolicy(ctx, "data"); client.StatusOf(err) != http.StatusConflict {
		t.Error(err)
	}
	tokens, err := in.host.Tokens(ctx)
	if err != nil || len(tokens) != 1 || tokens[0].Name != "ci" {
		t.Error(tokens, err)
	}
	if _, err := in.host.RevokeToken(ctx, "ci"); err != nil {
		t.Error(err)
	}
	if _, err := ci.Policies(ctx); client.StatusOf(err) != http.StatusUnauthorized {
		t.Error(err)
	}
	if err := in.host.RemovePolicy(ctx, "data"); err != nil {
		t.Error(err)
	}
	var events []string
	for r, err := range in.log.Records(ctx, audit.Filter{Kinds: []audit.Kind{audit.KindDaemon}}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(r.Reason+r.Detail["name"], made.Secret) {
			t.Error("the secret is on record")
		}
		events = append(events, r.Detail["event"])
	}
	for _, want := range []string{"policy_put", "token_made", "token_revoked", "policy_removed", "api_refused"} {
		if !slices.Contains(events, want) {
			t.Errorf("%s is not on record: %v", want, events)
		}
	}
}

// TestDescriptionIsServed to anybody, and what is no route says so.
func TestDescriptionIsServed(t *testing.T) {
	t.Parallel()
	in := serve(t)
	resp := in.get("/v1/openapi.yaml", "")
	text, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(text, api.OpenAPI()) {
		t.Error(len(text), err)
	}
	if resp := in.get("/v1/nonsense", ""); resp.StatusCode != http.StatusNotFound || resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Error(resp.StatusCode, resp.Header)
	}
}

// TestAForkThatCantBeAnsweredIsNotMade: its client would hear of none of its copies. The control is one for which
// there is room.
func TestAForkThatCantBeAnsweredIsNotMade(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	c, ann := in.as(token.Grant{Name: "ann"})
	box := in.create(c, api.CreateSandbox{Linger: true})
	holding, leave := in.room.Enter(ctx, ann.ID) // another request of the token's
	if err := backend.Take(holding, backend.RoomEach-16<<10); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fork(ctx, box.ID, api.ForkSandbox{Count: 100}); client.StatusOf(err) != http.StatusTooManyRequests || len(in.manager.List()) != 1 {
		t.Errorf("a fork that is too much: %v, and %d sandboxes were made", err, len(in.manager.List())-1)
	}
	leave()
	if made, err := c.Fork(ctx, box.ID, api.ForkSandbox{Count: 100}); err != nil || len(made) != 100 {
		t.Errorf("the control: %v, and %d", err, len(made))
	}
}
