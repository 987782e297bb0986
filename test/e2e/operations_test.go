package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
)

// markFile is in the memory of a sandbox, not on a disk.
const markFile = "/tmp/mark"

// operation is something that a client asks of a daemon which dies of it.
type operation struct {
	point   faultpoint.Point
	subject api.Sandbox // it is done to this one, which has the mark in its memory
	mark    string
	made    string // the snapshot that was there before
	key     string // of the token whose sandbox it is; "": nobody's
}

// verb is what goes on at the point.
func (d *operation) verb() string {
	verb, _, _ := strings.Cut(string(d.point), ".")
	return verb
}

// rehearse prepares what is to be done, with a daemon that lives.
func (in *installation) rehearse(t *testing.T, point faultpoint.Point) *operation {
	t.Helper()
	d := &operation{point: point, mark: "before " + string(point)}
	if point == faultpoint.ResumeForFiles {
		d.subject, d.key = in.createOwned(t)
	} else {
		d.subject = in.create("debian", nothingAllowed)
	}
	if _, err := in.Client.WriteFile(t.Context(), d.subject.ID, client.File{Path: markFile}, strings.NewReader(d.mark)); err != nil {
		t.Fatal(err)
	}
	switch d.verb() {
	case "resume", "thaw":
		if _, err := in.Client.Pause(t.Context(), d.subject.ID); err != nil {
			t.Fatal(err)
		}
	case "restore":
		snapshot, err := in.Client.MakeSnapshot(t.Context(), d.subject.ID, api.MakeSnapshot{})
		if err != nil {
			t.Fatal(err)
		}
		d.made = snapshot.ID
	}
	return d
}

// createOwned makes a sandbox of a token, which alone can ask for what only the SDKs'
// wire has.
func (in *installation) createOwned(t *testing.T) (sb api.Sandbox, key string) {
	t.Helper()
	remote, _, key := in.clientOf(t, api.MakeToken{Name: "owner"})
	sb, err := remote.CreateSandbox(t.Context(), api.CreateSandbox{Linger: true})
	if err != nil {
		t.Fatal(err)
	}
	return sb, key
}

// clientOf makes a token and opens a client with it, over the network.
func (in *installation) clientOf(t *testing.T, ask api.MakeToken) (remote *client.Client, url, key string) {
	t.Helper()
	token, err := in.Client.MakeToken(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	version, err := in.Client.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	remote, err = client.Open(client.Remote{URL: version.URL, Token: token.Secret})
	if err != nil {
		t.Fatal(err)
	}
	return remote, version.URL, token.Secret
}

// act asks. It returns what the client was told, for messages: the daemon
// dies of it, or shortly after.
func (d *operation) act(ctx context.Context, in *installation) error {
	if err := in.ready(ctx); err != nil {
		return err // of one that dies at its start
	}
	c, id := in.Client, d.subject.ID
	if d.key != "" {
		return in.ask(ctx, d.key, "/sandboxes/"+id+"/resume", `{"memory":false,"timeout":300}`)
	}
	var err error
	switch d.verb() {
	case "create":
		_, err = c.CreateSandbox(ctx, plain())
	case "restore":
		_, err = c.CreateSandbox(ctx, api.CreateSandbox{Snapshot: d.made, Linger: true})
	case "exec":
		_, err = execute(ctx, c, id, "true")
	case "pause", "freeze":
		_, err = c.Pause(ctx, id)
	case "resume", "thaw":
		_, err = c.Resume(ctx, id)
	case "extend":
		_, err = c.SetLifetime(ctx, id, api.Lifetime{TTLSeconds: 3600})
	case "snapshot":
		_, err = c.MakeSnapshot(ctx, id, api.MakeSnapshot{})
	case "fork":
		_, err = c.Fork(ctx, id, api.ForkSandbox{})
	case "destroy":
		err = c.DestroySandbox(ctx, id)
	}
	return err
}

// judge compares what the next daemon has with how far the one before had come.
func (d *operation) judge(t *testing.T, all []api.Sandbox, witness string) {
	t.Helper()
	at := slices.IndexFunc(all, func(s api.Sandbox) bool { return s.ID == d.subject.ID })
	switch gone := d.verb() == "destroy"; {
	case gone && at >= 0:
		t.Errorf("it is %s, and was being destroyed", all[at].State)
	case !gone && at < 0:
		t.Fatalf("it is gone: %v", all)
	case !gone && all[at].State != d.stateAfter():
		t.Errorf("it is %s, want %s", all[at].State, d.stateAfter())
	case d.verb() == "extend" && all[at].Ends.IsZero():
		t.Error("it has no end, and got one")
	}
	others := d.others(all, witness)
	want := 0
	if d.point == faultpoint.CreateRunning || d.point == faultpoint.ForkRestored {
		want = 1 // it is whole, though its client was not told of it
	}
	if len(others) != want {
		t.Errorf("%d others are there, want %d: %v", len(others), want, others)
	}
	for _, s := range others {
		if s.State != "running" || d.verb() == "fork" && s.Parent != d.subject.ID {
			t.Errorf("there is %+v", s)
		}
	}
}

// stateAfter is what becomes of the subject: on disk, if its image was whole and
// nothing of it ran again.
func (d *operation) stateAfter() string {
	switch d.point { //nolint:exhaustive // it runs after the others
	case faultpoint.FreezeWritten, faultpoint.FreezeRecorded, faultpoint.PauseDone, faultpoint.ResumeChecked, faultpoint.ThawBegun:
		return "paused"
	}
	return "running"
}

// goOn uses whatever is there: a paused sandbox resumes, commands run, a snapshot is
// whole.
func (d *operation) goOn(t *testing.T, in *installation, witness string) {
	t.Helper()
	snapshots, err := in.Client.Snapshots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if whole := d.made != "" || d.point == faultpoint.SnapshotPublished; whole != (len(snapshots) == 1) {
		t.Errorf("the snapshots are %v", snapshots)
	}
	for _, s := range snapshots {
		if _, err := in.Client.CreateSandbox(t.Context(), api.CreateSandbox{Snapshot: s.ID, Linger: true}); err != nil {
			t.Errorf("nothing can be made from the snapshot that is there: %v", err)
		}
	}
	all, err := in.Client.Sandboxes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.ID == witness {
			continue
		}
		if s.State == "paused" {
			if s, err = in.Client.Resume(t.Context(), s.ID); err != nil || s.State != "running" {
				t.Fatalf("after its resume it is %+v: %v", s, err)
			}
		}
		mark := d.mark
		if d.verb() == "create" && s.ID != d.subject.ID {
			mark = "" // it is nobody's copy
		}
		in.wantUse(t, s, mark)
	}
}
