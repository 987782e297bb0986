package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// planner is one `cofferdam plan`, from the request to the sandbox's end.
type planner struct {
	flags   planFlags
	argv    []string // as the person wrote it
	rewrite installer.Rewrite
	request api.CreateSandbox
	lock    *lockTarget // nil: none is written
	stderr  *ui.Stderr

	client *client.Client
	box    api.Sandbox
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
	_, parsed, err := loadDeciding(p.flags.policy)
	if err != nil {
		return err
	}
	text := strings.Join(p.argv, " ")
	if d := parsed.DecideCommand(policy.CommandInput{Command: &text}); d.Effect != policy.Allow {
		return &exitError{code: exitRefused, err: fmt.Errorf("the policy refuses the command itself, so there is nothing to plan: %s [%s]", d.Reason, d.Rule)}
	}
	return nil
}

// weighPlan has the sandbox resolve, and the daemon weigh what came of it.
func (p *planner) weighPlan(ctx context.Context) (api.Plan, installer.Documents, installer.Result, error) {
	docs, result, err := p.resolveInSandbox(ctx)
	if err != nil {
		return api.Plan{}, nil, installer.Result{}, err
	}
	var releases []api.PlanChoice
	for _, c := range result.Choices {
		releases = append(releases, api.PlanChoice(c))
	}
	var made api.Plan
	err = ui.ShowWaiting("weighing what was resolved", func() (err error) {
		made, err = p.client.MakePlan(ctx, p.box.Run, api.ResolvedPlan{
			Ecosystem: string(result.Ecosystem), Releases: releases, Notes: result.Notes, Request: p.flags.request, Because: p.flags.because,
		})
		return err
	})
	if err != nil {
		return api.Plan{}, nil, installer.Result{}, &exitError{code: exitFailure, err: err}
	}
	return made, docs, result, nil
}

func (p *planner) createSandbox(ctx context.Context) (err error) {
	if p.client, err = connectDaemon(ctx); err != nil {
		return err
	}
	p.request.Lifetime.LeaseSeconds = int64(planLease / time.Second)
	err = ui.ShowWaiting("making a sandbox", func() (err error) {
		p.box, err = p.client.CreateSandbox(ctx, p.request)
		if leaseUnknown(&p.request, err, p.stderr) {
			p.box, err = p.client.CreateSandbox(ctx, p.request)
		}
		return err
	})
	if badSandbox(err) {
		return &exitError{code: exitUsage, err: err}
	}
	for _, note := range p.box.Notes {
		p.stderr.Say("note: %s", note)
	}
	return err
}

// destroy ends the sandbox; what it was shown is forgotten with it.
func (p *planner) destroy(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	destroyed(ctx, p.client, p.box.ID, p.stderr.Say)
}

// resolveInSandbox runs the rewritten command, and gives what it left and what that means.
func (p *planner) resolveInSandbox(ctx context.Context) (docs installer.Documents, result installer.Result, err error) {
	err = ui.ShowWaiting("resolving", func() (err error) {
		docs, result, err = p.rewrite.Resolve(ctx, func(argv []string) ([]byte, error) { return p.output(ctx, argv) })
		return err
	})
	if failed, is := errors.AsType[*unresolvedError](err); is {
		return nil, result, p.unresolved(ctx, failed.exit, failed.out)
	}
	if _, coded := errors.AsType[*exitError](err); err != nil && !coded {
		err = &exitError{code: exitFailure, err: err}
	}
	return docs, result, err
}

// unresolvedError is a command of a resolver that did not end well.
type unresolvedError struct {
	exit api.Exit
	out  *heard
}

func (e *unresolvedError) Error() string { return fmt.Sprintf("it ended with code %d", e.exit.Code) }

// output runs a command in the plan's sandbox and gives its standard output.
func (p *planner) output(ctx context.Context, argv []string) ([]byte, error) {
	started, err := p.client.StartCommand(ctx, p.box.ID, api.StartCommand{
		Argv: argv, Dir: p.request.Workdir, TimeoutMS: wholeMilliseconds(p.flags.timeout),
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
	listening := newSession()
	listening.attach, listening.lossless = attaching(p.client, p.box.ID, started.ID), true
	listening.out, listening.err, listening.say = ui.WriterFunc(out.keepStdout), ui.WriterFunc(out.message), p.stderr.Say
	exit, err := listening.followCommand(ctx)
	if err != nil {
		return nil, p.interrupted(ctx, err)
	}
	if exit.Code != 0 || exit.Error != "" || exit.TimedOut {
		return nil, &unresolvedError{exit, out}
	}
	return out.stdout, nil
}

// interrupted is why the resolver's end is not known.
func (p *planner) interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &exitError{code: exitSignalBase + int(syscall.SIGINT), err: errors.New("the plan was given up; its sandbox is removed")}
	}
	if output, ok := errors.AsType[*outputError](err); ok {
		return &exitError{code: exitFailure, err: output.err}
	}
	return &exitError{code: exitFailure, err: fmt.Errorf("the resolver in sandbox %s was lost: %w", p.box.ID, err)}
}

// unresolved says why there is no plan: the resolver's last words, and what it
// was refused.
func (p *planner) unresolved(ctx context.Context, exit api.Exit, out *heard) error {
	for _, line := range out.lastLines() {
		p.stderr.Line("  | " + ui.Printable(line))
	}
	summary, err := askAgain(ctx, p.client, func(c *client.Client) (api.RunSummary, error) { return c.RunSummary(ctx, p.box.Run) })
	if err == nil {
		summary.Withheld = nil // the resolver passed over these; what it missed is among the refused
		for _, line := range append(summaryLines(summary, p.stderr.Width()), suggestLines(summary, nil)...) {
			p.stderr.Line(line)
		}
	}
	why := fmt.Sprintf("the resolver ended with code %d", exit.Code)
	switch {
	case exit.TimedOut:
		why = "the resolver's time limit was over"
	case exit.Error != "":
		why = exit.Error
	}
	if err := (killed{p.client, p.box.Run, p.box.ID}).explainKill(ctx, &exit, nil); err != nil {
		why = err.Error()
	}
	return &exitError{code: exitFailure, err: fmt.Errorf("no plan could be made: %s", why)}
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

// keepStdout keeps what the command writes to its standard output.
func (h *heard) keepStdout(p []byte) (int, error) {
	if len(h.stdout)+len(p) > installer.MaxOutput {
		return 0, fault.Invalid("the resolver's result has more than %d bytes", installer.MaxOutput)
	}
	h.stdout = append(h.stdout, p...)
	return len(p), nil
}

// message keeps the last of what it writes to its standard error.
func (h *heard) message(p []byte) (int, error) {
	h.stderr = append(h.stderr, p...)
	if len(h.stderr) > 2*maxHeard {
		h.stderr = append([]byte(nil), h.stderr[len(h.stderr)-maxHeard:]...)
	}
	return len(p), nil
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
