package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// farewell bounds what happens after the command: its summary, and the end of
// the sandbox.
const farewell = 2 * time.Minute

// runner is one `cofferdam run`, from the request to the sandbox's end, or one
// `cofferdam attach`, which finds the sandbox and its command.
type runner struct {
	flags   runFlags
	argv    []string
	request api.CreateSandbox
	voice   *voice

	client  *client.Client
	box     api.Sandbox
	command api.Command
	tty     *terminal // nil: none
	session *session
	presses *interrupts
	holds   holdTeller
	attach  *attachment // nil: the run is ours from its beginning

	published []publication
	summed    *api.RunSummary // nil: not asked for yet, or not had

	phase atomic.Int32            // what a signal means depends on it
	end   context.CancelCauseFunc // ends the run, with why
	hurry context.CancelFunc      // ends the farewell
}

// The phases of a run.
const (
	phaseSetup int32 = iota
	phaseCommand
	phaseFarewell
)

// runCommand is `cofferdam run` once the flags are parsed.
func runCommand(ctx context.Context, flags runFlags, argv []string) error {
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the current directory: %w", err)
	}
	r := newRunner(flags, argv)
	var exit *api.Exit
	if r.request, err = flags.sandboxRequest(cwd); err == nil {
		r.published, err = publish(ctx, flags.publish)
	}
	if err == nil {
		defer unpublish(r.published)
		exit, err = r.run(ctx)
	}
	if flags.json {
		err = r.tellJSON(ctx, exit, err)
	}
	return err
}

func newRunner(flags runFlags, argv []string) *runner {
	r := &runner{flags: flags, argv: argv, voice: &voice{w: os.Stderr}, presses: &interrupts{}, session: newSession()}
	r.holds.say = r.voice.say
	return r
}

// run returns the command's exit if there was one, and an *exitError unless
// all went well.
func (r *runner) run(ctx context.Context) (*api.Exit, error) {
	bye, hurry := context.WithCancel(context.WithoutCancel(ctx))
	defer hurry()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r.end, r.hurry = end, hurry
	defer r.watchSignals(ctx)()

	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	if r.attach != nil && r.attach.over {
		return r.tellOver(ctx)
	}
	exit, err := r.inSandbox(ctx)
	r.phase.Store(phaseFarewell)
	if _, left := errors.AsType[*detached](context.Cause(ctx)); left && exit == nil {
		return nil, r.leave()
	}
	bye, cancel := context.WithTimeout(bye, farewell)
	defer cancel()
	err = r.sayNow(r.endedByPolicy(bye, exit, deathbed{r.client, r.box.Run, r.box.ID}.obituary(bye, exit, err)))
	if !r.flags.json {
		r.tell(bye, exit)
	}
	if !r.box.Linger {
		r.destroy(bye)
	}
	return exit, err
}

// begin has the sandbox: a new one, or the one to go back to.
func (r *runner) begin(ctx context.Context) error {
	if r.attach != nil {
		return r.find(ctx)
	}
	return r.create(ctx)
}

// sayNow says what is out of the ordinary before the table does.
func (r *runner) sayNow(err error) error {
	e, ok := errors.AsType[*exitError](err)
	if !ok || e.err == nil {
		return err
	}
	r.voice.say("%s", e.err)
	return &exitError{code: e.code, err: e.err, said: true}
}

// create finds the daemon and makes the sandbox.
func (r *runner) create(ctx context.Context) error {
	c, err := connect(ctx)
	if err != nil {
		return r.failed(ctx, exitOurs, err)
	}
	r.client = c
	err = patiently("making a sandbox", func() (err error) {
		r.box, err = c.CreateSandbox(ctx, r.request)
		return err
	})
	switch status := client.StatusOf(err); {
	case err == nil:
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError, status == http.StatusServiceUnavailable:
		return r.failed(ctx, exitUsage, err)
	default:
		return r.failed(ctx, exitOurs, err)
	}
	for _, note := range r.box.Notes {
		r.voice.say("note: %s", note)
	}
	tellMissing(c, r.box.Missing, r.voice.say)
	return nil
}

// inSandbox runs the command and says in an error what was out of the ordinary.
func (r *runner) inSandbox(ctx context.Context) (*api.Exit, error) {
	start, err := r.prepare()
	if err != nil {
		return nil, r.failed(ctx, exitOurs, err)
	}
	defer r.cooked()
	defer r.openPorts(ctx)()
	// The command may run before the answer that says so is here: a signal from
	// now on is for it, and waits until there is somebody to bring it.
	r.phase.Store(phaseCommand)
	if r.attach == nil {
		err = r.start(ctx, start)
	}
	if err != nil {
		return nil, err
	}
	if r.attach != nil {
		r.resize(ctx) // the terminal may be another one
	}
	watching := r.watchHolds(ctx)
	exit, err := r.follow(ctx, start.Stdin)
	watching()
	if err != nil {
		return nil, r.lost(ctx, err)
	}
	return &exit, judge(exit)
}

func (r *runner) start(ctx context.Context, start api.StartCommand) error {
	var err error
	r.command, err = r.client.StartCommand(ctx, r.box.ID, start)
	switch status := client.StatusOf(err); {
	case err == nil:
		return nil
	case status == http.StatusForbidden:
		return r.failed(ctx, exitRefused, err)
	case status == http.StatusBadRequest:
		return r.failed(ctx, exitUsage, err)
	}
	return r.failed(ctx, exitOurs, err)
}

// prepare takes the terminal, if there is one, and describes the command.
func (r *runner) prepare() (api.StartCommand, error) {
	start := api.StartCommand{
		Argv: r.argv, Dir: r.request.Workdir, Stdin: readable(),
		TimeoutMS: (r.flags.timeout + time.Millisecond - 1).Milliseconds(),
	}
	if r.attach != nil && !r.command.Terminal {
		return start, nil // it was started without one
	}
	tty, err := openTerminal()
	if err != nil {
		return start, fmt.Errorf("take the terminal: %w", err)
	}
	if tty == nil {
		return start, nil
	}
	r.tty, r.presses.tty = tty, true
	r.voice.setRaw(true)
	start.Rows, start.Cols = tty.size()
	if _, set := r.request.Env["TERM"]; !set {
		start.Env = map[string]string{"TERM": termName()}
	}
	return start, nil
}

// cooked gives the terminal back.
func (r *runner) cooked() {
	r.tty.restore()
	r.voice.setRaw(false)
}

// follow passes output, input and window size until the command has ended.
func (r *runner) follow(ctx context.Context, input bool) (api.Exit, error) {
	var out io.Writer = os.Stdout
	if r.tty != nil {
		out = r.voice.beside(out)
	}
	r.session.out, r.session.err, r.session.say = r.watched(out), r.voice, r.voice.say
	r.session.attach = func(ctx context.Context, offset int64) (*client.Attachment, error) {
		return ask(ctx, r.client, func(c *client.Client) (*client.Attachment, error) {
			return c.Attach(ctx, r.box.ID, r.command.ID, offset)
		})
	}
	if input {
		// Not waited for: a read of stdin can't be taken back. It ends with
		// the process.
		go r.session.pump(ctx, os.Stdin, func(p []byte) []byte { return r.pressed(ctx, p) })
	}
	return r.session.follow(ctx)
}

// watched tells the interrupts what the command writes.
func (r *runner) watched(out io.Writer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		r.presses.output(p)
		return out.Write(p)
	})
}

// destroy ends the sandbox. That it fails does not change the exit code: it
// is the command's.
func (r *runner) destroy(ctx context.Context) {
	_, err := ask(ctx, r.client, func(c *client.Client) (any, error) { return nil, c.DestroySandbox(ctx, r.box.ID) })
	if err != nil && client.StatusOf(err) != http.StatusNotFound {
		r.voice.say("the sandbox %s could not be removed; remove it with: cofferdam kill %s (%s)", r.box.ID, r.box.ID, err)
	}
}

// ask asks the daemon, and where it is gone meanwhile the one that takes its
// place. Asking twice must do no harm.
func ask[T any](ctx context.Context, c *client.Client, question func(*client.Client) (T, error)) (T, error) {
	answer, err := question(c)
	if !errors.Is(err, client.ErrNoDaemon) && !errors.Is(err, client.ErrLost) {
		return answer, err
	}
	if c, err = connect(ctx); err != nil {
		return answer, err
	}
	return question(c)
}

// failed gives an error its exit code, unless the person ended the run: then
// that is the reason.
func (r *runner) failed(ctx context.Context, code int, err error) error {
	if why, ok := errors.AsType[*ended](context.Cause(ctx)); ok {
		return &exitError{code: exitSignalBase + int(why.signal), err: why}
	}
	return &exitError{code: code, err: err}
}

// lost says why a command's end is not known.
func (r *runner) lost(ctx context.Context, err error) error {
	if output, ok := errors.AsType[*outputError](err); ok {
		if errors.Is(output.err, syscall.EPIPE) {
			return &exitError{code: exitPipe}
		}
		return &exitError{code: exitOurs, err: err}
	}
	return r.failed(ctx, exitOurs, fmt.Errorf("the command in sandbox %s was lost: %w", r.box.ID, err))
}
