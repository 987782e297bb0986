package templatebuild

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// doStep does one, in the setting of those before, which it may change.
func (j *job) doStep(ctx context.Context, i int, s Step, now *setting) error {
	title := titleOf(s)
	j.g.log.addLine(Info, stepNumber(i), fmt.Sprintf("[%d/%d] %s", i+1, len(j.recipe.Steps), title), true)
	if err := j.b.recordBuild(ctx, j.box, j.g, admission.Build{Stage: admission.BuildStep, Step: stepNumber(i), Text: title}); err != nil {
		return err
	}
	s, err := j.expanded(ctx, stepNumber(i), s, *now)
	if err != nil {
		return err
	}
	t, err := now.makeTask(i, s, j.req.Account)
	if err != nil {
		return err
	}
	switch t.kind {
	case kindRun:
		return j.runTask(ctx, t)
	case kindWorkdir:
		return j.makeDir(ctx, t.setting.workdir, t.setting.user)
	case kindCopy:
		return j.copyUpload(ctx, t)
	}
	return nil // the others are settings
}

// runTask does a run: what its beginning asks of apt, and then the rest.
func (j *job) runTask(ctx context.Context, t task) error {
	if t.install != nil {
		if err := j.installSystem(ctx, t); err != nil || t.command == "" {
			return err
		}
	}
	err := j.runCommand(ctx, t.number, j.shellCommand(t.setting, t.command))
	if err != nil && callsApt(t.command) {
		return fault.Wrap(fault.ErrConflict, err, "%s (there is no apt in a sandbox; at the beginning of a RUN step, apt-get update and apt-get install NAMES are done by the host)", clientSentence(err))
	}
	return err
}

// shellCommand is a command as the SDKs' own are run.
func (j *job) shellCommand(s setting, command string) sandbox.Command {
	return sandbox.Command{
		Argv: []string{"/bin/bash", "-l", "-c", command}, Judged: command, Env: s.env, Dir: s.workdir, User: j.asUser(s.user), Timeout: longestStep,
	}
}

// asUser is a setting's user for the manager, to whom "" is the one that the base settled.
func (j *job) asUser(user string) string {
	if user == "" && j.req.Account.Default != "" {
		return j.req.Account.Name
	}
	return user
}

// runCommand does a command to its end, which must be a good one.
func (j *job) runCommand(ctx context.Context, step string, c sandbox.Command) error {
	p, err := j.startCommand(ctx, step, c)
	if err != nil {
		return err
	}
	exit, err := p.waitExit(ctx)
	if err != nil {
		return err
	}
	return p.failure(exit)
}

// process is a command that runs, whose output becomes the log.
type process struct {
	conn *channel.Conn
	done chan struct{} // closed when the rest is set
	exit channel.Exit
	err  error

	mu   sync.Mutex       // guards last
	last map[Level]string // line that it wrote, on its output or its errors
}

// startCommand starts a command. Its output is read until it ends, or let go.
func (j *job) startCommand(ctx context.Context, step string, c sandbox.Command) (*process, error) {
	started, err := j.b.cfg.Sandboxes.Start(ctx, j.box, c)
	if err != nil {
		return nil, err
	}
	conn, err := j.b.cfg.Sandboxes.Attach(ctx, j.box, started.ID, 0)
	if err != nil {
		return nil, err
	}
	p := &process{conn: channel.NewConn(conn), done: make(chan struct{}), last: map[Level]string{}}
	safego.Go(func() {
		defer close(p.done)
		p.err = errors.New("the output was not read")
		p.exit, p.err = p.readOutput(j.output(p, step, Info), j.output(p, step, Warn))
	})
	return p, nil
}

// elevated does a command of root's that has rights to its end, which must be a good one.
func (j *job) elevated(ctx context.Context, step string, e sandbox.Elevated) error {
	p := &process{last: map[Level]string{}}
	stdout, stderr := j.output(p, step, Info), j.output(p, step, Warn)
	e.Stdout, e.Stderr = stdout, stderr
	exit, err := j.b.cfg.Sandboxes.Elevated(ctx, j.box, e)
	stdout.endLine()
	stderr.endLine()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	return p.failure(exit)
}

// output is what a process writes: the build's log has it, by lines.
func (j *job) output(p *process, step string, level Level) *outputLines {
	return &outputLines{tell: func(line string) {
		j.g.log.addLine(level, step, line, false)
		if strings.TrimSpace(line) != "" {
			p.mu.Lock()
			p.last[level] = line
			p.mu.Unlock()
		}
	}}
}

func (p *process) readOutput(stdout, stderr *outputLines) (channel.Exit, error) {
	for {
		kind, payload, err := p.conn.ReadFrame()
		if err != nil {
			return channel.Exit{}, fault.Wrap(fault.ErrUnavailable, err, "the output of the command was cut short")
		}
		switch kind { //nolint:exhaustive // input frames do not come from a keeper
		case channel.FrameStdout:
			stdout.writeData(payload)
		case channel.FrameStderr:
			stderr.writeData(payload)
		case channel.FrameExit:
			stdout.endLine()
			stderr.endLine()
			var exit channel.Exit
			err = json.Unmarshal(payload, &exit)
			return exit, err
		}
	}
}

// waitExit returns how it ended.
func (p *process) waitExit(ctx context.Context) (channel.Exit, error) {
	select {
	case <-p.done:
		_ = p.conn.Close()
		return p.exit, p.err
	case <-ctx.Done():
		p.releaseOutput()
		return channel.Exit{}, context.Cause(ctx)
	}
}

// releaseOutput lets go of the output; the command goes on.
func (p *process) releaseOutput() {
	if p == nil {
		return
	}
	_ = p.conn.Close()
	<-p.done
}

// failure is why an end is none of the good ones; nil: it is.
func (p *process) failure(exit channel.Exit) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	why := fmt.Sprintf("the command ended with exit code %d", exit.Code)
	switch {
	case exit.TimedOut:
		why = "the command ran out of time"
	case exit.Error != "":
		why += ": " + text.Shorten(exit.Error, 300)
	case exit.Code == 0:
		return nil
	default: // the two come in any order, and what went wrong is told on the second
		if last := cmp.Or(p.last[Warn], p.last[Info]); last != "" {
			why += ": " + text.Shorten(last, 300)
		}
	}
	return fault.New(fault.ErrConflict, "%s", why)
}
