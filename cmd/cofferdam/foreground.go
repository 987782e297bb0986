package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// foreground is a command of a sandbox that has this process's input, output, signals and,
// if there is one, its terminal.
type foreground struct {
	client  *client.Client
	sandbox string
	command string // its id, once it is started
	stderr  *ui.Stderr
	tty     *ui.Terminal // nil: none
	session *session
}

func newForeground() *foreground {
	return &foreground{stderr: ui.NewStderr(os.Stderr), session: newSession()}
}

// takeTerminal gives the command the terminal, if there is one; restore gives it back.
func (f *foreground) takeTerminal(start *api.StartCommand, term bool) error {
	tty, err := ui.OpenTerminal()
	if err != nil {
		return fmt.Errorf("take the terminal: %w", err)
	}
	if tty == nil {
		return nil
	}
	f.tty = tty
	f.stderr.SetRaw(true)
	start.Rows, start.Cols = tty.Size()
	if !term {
		return nil
	}
	if start.Env == nil {
		start.Env = map[string]string{}
	}
	start.Env["TERM"] = ui.TermName()
	return nil
}

func (f *foreground) restore() {
	f.tty.Restore()
	f.stderr.SetRaw(false)
}

// startCommand starts the command. Its error is an *exitError: what the policy refuses and what
// was asked for wrongly have exit codes of their own.
func (f *foreground) startCommand(ctx context.Context, start api.StartCommand) error {
	command, err := f.client.StartCommand(ctx, f.sandbox, start)
	f.command = command.ID
	switch status := client.StatusOf(err); {
	case err == nil:
		return nil
	case status == http.StatusForbidden:
		return &exitError{code: exitRefused, err: err}
	case status == http.StatusBadRequest:
		return &exitError{code: exitUsage, err: err}
	}
	return &exitError{code: exitOurs, err: err}
}

// followCommand passes output and, if it is wanted, input until the command has ended. keys sees
// the input first, and returns what of it is passed; output sees what goes to stdout.
func (f *foreground) followCommand(ctx context.Context, input bool, keys func([]byte) []byte, output func([]byte)) (api.Exit, error) {
	var out io.Writer = os.Stdout
	if f.tty != nil {
		out = f.stderr.Beside(out)
	}
	s := f.session
	s.err, s.say = f.stderr, f.stderr.Say
	s.out = ui.WriterFunc(func(p []byte) (int, error) {
		output(p)
		return out.Write(p)
	})
	s.attach, s.beside = attaching(f.client, f.sandbox, f.command), signaling(f.client, f.sandbox, f.command)
	if input {
		// Not waited for: a read of stdin can't be taken back. It ends with
		// the process.
		go s.pumpInput(ctx, os.Stdin, keys)
	}
	return s.followCommand(ctx)
}

// attaching attaches to a command's output, from an offset on.
func attaching(c *client.Client, sandbox, command string) func(context.Context, int64) (*client.Attachment, error) {
	return func(ctx context.Context, offset int64) (*client.Attachment, error) {
		return askAgain(ctx, c, func(c *client.Client) (*client.Attachment, error) { return c.Attach(ctx, sandbox, command, offset) })
	}
}

// sendSignal hands a signal to the command. It does not wait for the answer.
func (f *foreground) sendSignal(ctx context.Context, name string) {
	go f.session.sendSignal(ctx, name)
}

// signaling signals a command past all input that waits for it.
func signaling(c *client.Client, sandbox, command string) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		_, err := askAgain(ctx, c, func(c *client.Client) (any, error) {
			return nil, client.SignalCommand(ctx, c, sandbox, command, name, false)
		})
		return err
	}
}

// resize hands the window's size to the command, and does not wait either.
func (f *foreground) resize(ctx context.Context) {
	if f.tty == nil {
		return
	}
	go func() {
		_ = f.session.sendThroughLink(ctx, func(link *client.Attachment) error {
			rows, cols := f.tty.Size() // asked last, so that the last one sent is the newest
			return link.Resize(rows, cols)
		})
	}()
}

// explainLoss says why a command's end is not known.
func (f *foreground) explainLoss(err error) error {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e
	}
	if output, ok := errors.AsType[*outputError](err); ok {
		if errors.Is(output.err, syscall.EPIPE) {
			return &exitError{code: exitPipe}
		}
		return &exitError{code: exitOurs, err: err}
	}
	return &exitError{code: exitOurs, err: fmt.Errorf("the command in sandbox %s was lost: %w", f.sandbox, err)}
}

// handleSignals gives a command's signals to handle until the returned function is called.
func handleSignals(handle func(syscall.Signal)) (stop func()) {
	signals := make(chan os.Signal, 16)
	// SIGPIPE is asked for so that a write to a closed stdout fails instead of
	// killing this process with the sandbox left behind.
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP,
		syscall.SIGWINCH, syscall.SIGPIPE)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case got := <-signals:
				if sig, ok := got.(syscall.Signal); ok && sig != syscall.SIGPIPE {
					handle(sig)
				}
			case <-quit:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(quit)
		<-done
	}
}
