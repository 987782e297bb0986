package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// maxTask bounds what an agent says that a sandbox is for, in bytes.
const maxTask = 1 << 10

// aboutSandbox says in a schema which sandbox is meant.
type aboutSandbox struct {
	Sandbox string `json:"sandbox,omitempty" jsonschema:"id of one of your sandboxes; leave it out for your default one, which is made when it is first needed"`
}

type createInput struct {
	Task string `json:"task,omitempty" jsonschema:"what it is for, in a few words, for the record"`
}

// boxView is what tools tell of a sandbox.
type boxView struct {
	ID       string    `json:"sandbox"`
	Run      string    `json:"run"` // the id of this session in the record
	State    string    `json:"state"`
	Template string    `json:"template"`
	Default  bool      `json:"default"` // calls that name no sandbox use it
	Created  string    `json:"created"`
	Ends     string    `json:"ends,omitempty"`    // when it ends by itself, if it is not used
	Notes    []string  `json:"notes,omitempty"`   // what the policy asks for that stays closed here
	Waiting  []waiting `json:"waiting,omitempty"` // what it waits for a person to answer
}

// waiting is something that waits for a person.
type waiting struct {
	Request string `json:"request"`
	For     string `json:"for"`
	Reason  string `json:"reason"`
	Answer  string `json:"answer"` // how a person answers it; you can not
}

func (p *peer) viewBox(b api.Sandbox) boxView {
	const layout = "2006-01-02T15:04:05Z07:00"
	p.mu.Lock()
	standard := p.standard == b.ID
	p.mu.Unlock()
	v := boxView{ID: b.ID, Run: b.Run, State: b.State, Template: b.Template, Default: standard, Created: b.Created.Format(layout), Waiting: p.waitingFor(b.Holds)}
	if !b.Ends.IsZero() {
		v.Ends = b.Ends.Format(layout)
	}
	for _, note := range b.Notes {
		v.Notes = append(v.Notes, ui.Printable(note))
	}
	return v
}

func (p *peer) waitingFor(holds []api.Hold) (all []waiting) {
	for _, h := range holds {
		id := h.Request
		if h.Tree != "" {
			id = h.Tree
		}
		all = append(all, waiting{Request: id, For: ui.Printable(h.Package), Reason: ui.Printable(h.Reason), Answer: p.howToAnswer(id)})
	}
	return all
}

func createSandbox(ctx context.Context, c call, in createInput) (boxView, error) {
	made, err := c.peer.createSandbox(ctx, in.Task)
	if err != nil {
		return boxView{}, err
	}
	return c.peer.viewBox(made), nil
}

// createSandbox makes a sandbox, which is the default one if there is none.
func (p *peer) createSandbox(ctx context.Context, task string) (api.Sandbox, error) {
	if len(task) > maxTask {
		return api.Sandbox{}, failure(codeInvalid, fmt.Sprintf("task has %d bytes; it may have %d", len(task), maxTask), "say it shorter")
	}
	select {
	case p.making <- struct{}{}:
		defer func() { <-p.making }()
	case <-ctx.Done():
		return api.Sandbox{}, context.Cause(ctx)
	}
	return p.createNow(ctx, task)
}

// createNow creates a sandbox; the caller has the turn.
func (p *peer) createNow(ctx context.Context, task string) (api.Sandbox, error) {
	req := p.request(task)
	p.mu.Lock()
	count := len(p.boxes)
	p.mu.Unlock()
	if count >= maxSandboxes {
		return api.Sandbox{}, failure(codeTooMany, fmt.Sprintf("you have %d sandboxes, which is as many as you may have", count), "delete one (delete_sandbox), or use one that is there (list_sandboxes)")
	}
	made, err := askBackend(ctx, p, func(b Backend) (api.Sandbox, error) { return b.CreateSandbox(ctx, req) })
	if err != nil {
		return api.Sandbox{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run, p.boxes = made.Run, append(p.boxes, made.ID)
	if p.standard == "" {
		p.standard = made.ID
	}
	safego.Go(func() { p.keepLease(made.ID) })
	return made, nil
}

// keepLease has a sandbox's lease go on for as long as the peer is there and has it: between calls
// nobody is attached to it. A daemon that is replaced is told again.
func (p *peer) keepLease(id string) {
	for p.checkOwned(id) == nil {
		err := tellBackend(p.life, p, func(b Backend) error { return b.Stay(p.life, id) })
		if err == nil { // the sandbox is gone, or the daemon has ended in order
			_, err = askBackend(p.life, p, func(b Backend) (api.Sandbox, error) { return b.Sandbox(p.life, id) })
		}
		if client.StatusOf(err) == http.StatusNotFound {
			return
		}
		select {
		case <-time.After(stayPause):
		case <-p.life.Done():
			return
		}
	}
}

// request is what the daemon is asked for. All sandboxes of a peer are of one run, so that
// what a person approves for the run serves all of them, and those that plan.
func (p *peer) request(task string) api.CreateSandbox {
	req := p.cfg.Sandbox
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != "" {
		req.Run = p.run
	}
	switch {
	case task != "":
		req.Task = ui.Printable(task)
	case req.Task == "":
		req.Task = "an agent's session" + p.clientName()
	}
	req.Linger = true // between calls nobody is attached
	if req.Lifetime == (api.Lifetime{}) {
		req.Lifetime = api.Lifetime{IdleSeconds: idleSeconds}
	}
	if req.Lifetime.LeaseSeconds == 0 { // a peer that is gone removes nothing any more
		req.Lifetime.LeaseSeconds = leaseSeconds
	}
	return req
}

// clientName is how the client calls itself.
func (p *peer) clientName() string {
	if at := p.session.InitializeParams(); at != nil && at.ClientInfo != nil {
		return " (" + text.Shorten(ui.Printable(at.ClientInfo.Name), 64) + ")"
	}
	return ""
}

// needSandbox returns the sandbox that a call is about, which is made if it is the default one.
func (p *peer) needSandbox(ctx context.Context, id string) (string, error) {
	if id != "" {
		return id, p.checkOwned(id)
	}
	select {
	case p.making <- struct{}{}:
		defer func() { <-p.making }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	p.mu.Lock()
	standard := p.standard
	p.mu.Unlock()
	if standard != "" {
		return standard, nil
	}
	made, err := p.createNow(ctx, "")
	return made.ID, err
}

// checkOwned refuses a sandbox that is not the peer's, whether there is one or not.
func (p *peer) checkOwned(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.boxes, id) {
		return nil
	}
	return failure(codeUnknownSandbox, fmt.Sprintf("you have no sandbox %q", text.Shorten(id, 64)), `list_sandboxes shows yours; leave "sandbox" out to use your default one`)
}

// goneError is the error for a sandbox that has ended meanwhile; any other is returned as it is.
// A sandbox that is gone is forgotten, so that the next call makes a new one.
func (p *peer) goneError(ctx context.Context, id string, err error) error {
	if client.StatusOf(err) != http.StatusNotFound {
		return err
	}
	if _, look := askBackend(ctx, p, func(b Backend) (api.Sandbox, error) { return b.Sandbox(ctx, id) }); client.StatusOf(look) != http.StatusNotFound {
		return err
	}
	p.forgetSandbox(id)
	return failure(codeUnknownSandbox, fmt.Sprintf("the sandbox %s is gone, with its files: somebody removed it, or its time was over", id),
		`call again without "sandbox" for a new one, and write your files again`)
}

func (p *peer) forgetSandbox(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.boxes = slices.DeleteFunc(p.boxes, func(have string) bool { return have == id })
	if p.standard == id {
		p.standard = ""
	}
	for command, l := range p.left {
		if l.sandbox == id {
			delete(p.left, command)
		}
	}
}

type listed struct {
	Sandboxes []boxView `json:"sandboxes"`
	Total     int       `json:"total"`
	Truncated bool      `json:"truncated"`
}

func listSandboxes(ctx context.Context, c call, _ struct{}) (listed, error) {
	p := c.peer
	p.mu.Lock()
	ids := slices.Clone(p.boxes)
	p.mu.Unlock()
	out := listed{Sandboxes: []boxView{}}
	for _, id := range ids {
		b, err := askBackend(ctx, p, func(b Backend) (api.Sandbox, error) { return b.Sandbox(ctx, id) })
		if client.StatusOf(err) == http.StatusNotFound {
			p.forgetSandbox(id)
			continue
		}
		if err != nil {
			return listed{}, err
		}
		out.Sandboxes = append(out.Sandboxes, p.viewBox(b))
	}
	out.Total = len(out.Sandboxes)
	return out, nil
}

type deleteInput struct {
	Sandbox string `json:"sandbox" jsonschema:"id of one of your sandboxes"`
}

type deleted struct {
	Deleted string `json:"deleted"`
}

func deleteSandbox(ctx context.Context, c call, in deleteInput) (deleted, error) {
	if err := c.peer.checkOwned(in.Sandbox); err != nil {
		return deleted{}, err
	}
	return deleted{in.Sandbox}, c.peer.removeSandbox(ctx, in.Sandbox)
}

// removeSandbox takes a sandbox away; one that is gone already is no error.
func (p *peer) removeSandbox(ctx context.Context, id string) error {
	err := tellBackend(ctx, p, func(b Backend) error { return b.DestroySandbox(ctx, id) })
	if err == nil || client.StatusOf(err) == http.StatusNotFound {
		p.forgetSandbox(id)
		return nil
	}
	return err
}

func (p *peer) removeAll(ctx context.Context) error {
	p.making <- struct{}{} // one that is being made is there then
	defer func() { <-p.making }()
	p.mu.Lock()
	ids := slices.Clone(p.boxes)
	p.mu.Unlock()
	var failures []error
	for _, id := range ids {
		failures = append(failures, p.removeSandbox(ctx, id))
	}
	return errors.Join(failures...)
}
