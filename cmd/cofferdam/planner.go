package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/installer"
	"github.com/cofferdam-dev/cofferdam/internal/installer/all"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/plan"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// planner is one `cofferdam plan`, from the request to the sandbox's end.
type planner struct {
	flags   planFlags
	argv    []string // as the person wrote it
	rewrite installer.Rewrite
	request api.CreateSandbox
	lock    *lockTarget // nil: none is written
	voice   *voice

	client *client.Client
	box    api.Sandbox
}

// planCommand is `cofferdam plan` once the flags are parsed. All that can be
// wrong with them is found before anything is made.
func planCommand(ctx context.Context, flags planFlags, argv []string) error {
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the current directory: %w", err)
	}
	p := &planner{flags: flags, argv: argv, voice: &voice{w: os.Stderr}}
	if p.request, err = flags.sandboxRequest(cwd); err != nil {
		return err
	}
	p.request.Plan = true
	for i := range p.request.Mounts {
		p.request.Mounts[i].ReadWrite = false
	}
	if p.rewrite, err = plan.Of(all.Installers(), argv, projectOf(p.request)); err != nil {
		return err
	}
	if err := p.mayRun(); err != nil {
		return err
	}
	if flags.lock != "" {
		if p.lock, err = newLockTarget(cwd, flags.lock, p.rewrite.Resolver, flags.yes); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return p.run(ctx)
}

// projectOf is the mount that covers the place where the command starts.
func projectOf(req api.CreateSandbox) installer.Project {
	var p installer.Project
	dir := path.Clean(req.Workdir)
	for _, m := range req.Mounts {
		rel, err := filepath.Rel(m.Destination, dir)
		if req.Workdir == "" || err != nil || rel == ".." || strings.HasPrefix(rel, "../") || len(m.Destination) <= len(p.Top) {
			continue
		}
		p = installer.Project{Top: m.Destination, Here: rel}
	}
	return p
}

// mayRun asks the policy's rules about the command itself: what the sandbox
// starts is another one.
func (p *planner) mayRun() error {
	if p.flags.policy == "" {
		return nil
	}
	_, parsed, err := loadPolicy(p.flags.policy)
	if err != nil {
		return err
	}
	text := strings.Join(p.argv, " ")
	if d := parsed.DecideCommand(policy.CommandInput{Command: &text}); d.Effect != policy.Allow {
		return &exitError{code: exitRefused, err: fmt.Errorf("the policy refuses the command itself, so there is nothing to plan: %s [%s]", d.Reason, d.Rule)}
	}
	return nil
}

func (p *planner) run(ctx context.Context) error {
	if err := p.create(ctx); err != nil {
		return err
	}
	defer p.destroy(context.WithoutCancel(ctx))
	if !p.flags.json {
		p.voice.say("resolving in sandbox %s (run %s); nothing is installed", p.box.ID, p.box.Run)
	}
	made, docs, result, err := p.weigh(ctx)
	if err != nil {
		return err
	}
	if err := p.tell(made); err != nil {
		return err
	}
	if p.lock != nil {
		if err := p.writeLock(made, docs, result); err != nil {
			return err
		}
	}
	return judgePlan(made)
}

// weigh has the sandbox resolve, and the daemon weigh what came of it.
func (p *planner) weigh(ctx context.Context) (api.Plan, installer.Documents, installer.Result, error) {
	docs, err := p.resolve(ctx)
	if err != nil {
		return api.Plan{}, nil, installer.Result{}, err
	}
	result, err := p.rewrite.Resolver.Result(docs)
	if err != nil {
		return api.Plan{}, nil, installer.Result{}, &exitError{code: exitFailure, err: err}
	}
	made, err := p.client.MakePlan(ctx, p.box.Run, api.ResolvedPlan{
		Ecosystem: string(result.Ecosystem), Releases: result.Choices, Notes: result.Notes, Request: p.flags.request, Because: p.flags.because,
	})
	if err != nil {
		return api.Plan{}, nil, installer.Result{}, &exitError{code: exitFailure, err: err}
	}
	return made, docs, result, nil
}

func (p *planner) create(ctx context.Context) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	p.client = c
	err = patiently("making a sandbox", func() (err error) {
		p.box, err = c.CreateSandbox(ctx, p.request)
		return err
	})
	switch status := client.StatusOf(err); {
	case err == nil:
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError, status == http.StatusServiceUnavailable:
		return &exitError{code: exitUsage, err: err}
	default:
		return err
	}
	for _, note := range p.box.Notes {
		p.voice.say("note: %s", note)
	}
	return nil
}

// destroy ends the sandbox; what it was shown is forgotten with it.
func (p *planner) destroy(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, planPatience)
	defer cancel()
	_, err := ask(ctx, p.client, func(c *client.Client) (any, error) { return nil, c.DestroySandbox(ctx, p.box.ID) })
	if err != nil && client.StatusOf(err) != http.StatusNotFound {
		p.voice.say("the sandbox %s could not be removed; remove it with: cofferdam destroy %s (%s)", p.box.ID, p.box.ID, err)
	}
}

// resolve runs the rewritten command and gives what it left.
func (p *planner) resolve(ctx context.Context) (installer.Documents, error) {
	started, err := p.client.StartCommand(ctx, p.box.ID, api.StartCommand{
		Argv: p.rewrite.Argv, Dir: p.request.Workdir, TimeoutMS: (p.flags.timeout + time.Millisecond - 1).Milliseconds(),
	})
	switch client.StatusOf(err) {
	case http.StatusForbidden:
		return nil, &exitError{code: exitRefused, err: err}
	case http.StatusBadRequest:
		return nil, &exitError{code: exitUsage, err: err}
	}
	if err != nil {
		return nil, err
	}
	out := &heard{}
	var exit api.Exit
	err = patiently("resolving", func() (err error) {
		exit, err = p.listen(ctx, started.ID, out)
		return err
	})
	if err != nil {
		return nil, p.interrupted(ctx, err)
	}
	if exit.Code != 0 || exit.Error != "" || exit.TimedOut {
		return nil, p.unresolved(ctx, exit, out)
	}
	docs, err := installer.ReadOutput(out.stdout, p.rewrite.Resolver.Documents)
	if err != nil {
		return nil, &exitError{code: exitFailure, err: err}
	}
	return docs, nil
}

// interrupted is why the resolver's end is not known.
func (p *planner) interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &exitError{code: exitSignalBase + int(syscall.SIGINT), err: errors.New("the plan was given up; its sandbox is removed")}
	}
	return &exitError{code: exitFailure, err: fmt.Errorf("the resolver in sandbox %s was lost: %w", p.box.ID, err)}
}

// unresolved says why there is no plan: the resolver's last words, and what it
// was refused.
func (p *planner) unresolved(ctx context.Context, exit api.Exit, out *heard) error {
	for _, line := range out.lastLines() {
		p.voice.line("  | " + printable(line))
	}
	summary, err := ask(ctx, p.client, func(c *client.Client) (api.RunSummary, error) { return c.RunSummary(ctx, p.box.Run) })
	if err == nil {
		summary.Withheld = nil // the resolver passed over these; what it missed is among the refused
		for _, line := range summaryLines(summary, widthOf(p.voice.w)) {
			p.voice.line(line)
		}
	}
	why := fmt.Sprintf("the resolver ended with code %d", exit.Code)
	switch {
	case exit.TimedOut:
		why = "the resolver's time limit was over"
	case exit.Error != "":
		why = exit.Error
	}
	if err := (deathbed{p.client, p.box.Run, p.box.ID}).obituary(ctx, &exit, nil); err != nil {
		why = err.Error()
	}
	return &exitError{code: exitFailure, err: fmt.Errorf("no plan could be made: %s", why)}
}

// listenTries is how often a lost connection is sought again.
const listenTries = 5

// listen takes what the command says until its end; the daemon may be replaced
// meanwhile.
func (p *planner) listen(ctx context.Context, command string, out *heard) (api.Exit, error) {
	offset := int64(0)
	for tries := 0; ; tries++ {
		link, err := ask(ctx, p.client, func(c *client.Client) (*client.Attachment, error) {
			return c.Attach(ctx, p.box.ID, command, offset)
		})
		if err != nil {
			return api.Exit{}, err
		}
		exit, err := out.take(link)
		if link.Offset() > offset {
			offset, tries = link.Offset(), 0
		}
		_ = link.Close() // nothing of value is in it any more
		switch {
		case exit != nil:
			return *exit, nil
		case ctx.Err() != nil:
			return api.Exit{}, context.Cause(ctx)
		case !errors.Is(err, client.ErrLost) && !errors.Is(err, client.ErrNoDaemon), tries >= listenTries:
			return api.Exit{}, err
		}
	}
}

// maxHeard bounds what is kept of a resolver's messages, in bytes; maxLastLines
// what is shown of them.
const (
	maxHeard     = 64 << 10
	maxLastLines = 20
)

// heard is what a command said: all of its standard output, and the last of its
// messages.
type heard struct {
	stdout []byte
	stderr []byte
}

// take takes an attachment's events; exit is nil if it ended before the command.
func (h *heard) take(link *client.Attachment) (*api.Exit, error) {
	for event, err := range link.Events() {
		switch {
		case err != nil:
			return nil, err
		case event.Exit != nil:
			return event.Exit, nil
		case event.Gap > 0:
			return nil, fault.New(fault.ErrUnavailable, "%d bytes of the resolver's result were not kept", event.Gap)
		case len(h.stdout)+len(event.Stdout) > installer.MaxOutput:
			return nil, fault.Invalid("the resolver's result has more than %d bytes", installer.MaxOutput)
		}
		h.stdout = append(h.stdout, event.Stdout...)
		h.stderr = append(h.stderr, event.Stderr...)
		if len(h.stderr) > 2*maxHeard {
			h.stderr = append([]byte(nil), h.stderr[len(h.stderr)-maxHeard:]...)
		}
	}
	return nil, client.ErrLost
}

// lastLines are the last lines of the resolver's messages that say something.
func (h *heard) lastLines() []string {
	var lines []string
	for line := range strings.Lines(string(h.stderr)) {
		if i := strings.LastIndexByte(strings.TrimRight(line, "\r\n"), '\r'); i >= 0 {
			line = line[i+1:] // a progress bar
		}
		if line = strings.TrimRight(line, " \r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-maxLastLines):]
}
