package guest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
)

const help = `In this sandbox, cofferdam can:

  cofferdam why [REQUEST] [--json]   say which packages and connections were refused last, and why;
                                     with the id that a refusal names, that one
  cofferdam request ...              ask for packages before anything fails (--help says more)
  cofferdam-tool                     list the functions of the host that may be called, and call them
  cofferdam help                     print this

What is allowed is decided outside the sandbox and can't be changed from here.
`

// Ask is the command line that processes in the sandbox have: why, request
// and help.
// It returns the exit code: 0, 1 when the agent can't be asked, 2 for usage.
func Ask(ctx context.Context, args []string, socket string, stdout, stderr io.Writer) int {
	switch {
	case len(args) > 0 && args[0] == "why":
		return askWhy(ctx, args[1:], socket, stdout, stderr)
	case len(args) > 0 && args[0] == "request":
		return askRequest(ctx, args[1:], socket, stdout, stderr)
	case len(args) == 0, len(args) == 1 && slices.Contains([]string{"help", "--help", "-h"}, args[0]):
		_, _ = io.WriteString(stdout, help)
		return 0
	default:
		_, _ = fmt.Fprintf(stderr, "cofferdam: %q is not something that can be done in a sandbox\n\n%s", args[0], help)
		return 2
	}
}

// askWhy runs `cofferdam why`: at most one request's id, and --json before or behind it.
func askWhy(ctx context.Context, args []string, socket string, stdout, stderr io.Writer) int {
	question := questionWhy
	if i := slices.Index(args, questionJSON); i >= 0 {
		question, args = question+" "+questionJSON, slices.Delete(slices.Clone(args), i, i+1)
	}
	switch {
	case len(args) == 1 && isRequestID(args[0]):
		question += " " + args[0]
	case len(args) > 0:
		_, _ = fmt.Fprintf(stderr, "cofferdam: why takes the id of one request and --json, not %.60q\n\n%s", args, help)
		return 2
	}
	return askAgent(ctx, question+"\n", socket, stdout, stderr)
}

// askAgent says a question to the agent and passes its answer on: to stderr, and with its
// exit code, if it is none.
func askAgent(ctx context.Context, question, socket string, stdout, stderr io.Writer) int {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "cofferdam: the agent of this sandbox can't be asked: %v\n", err)
		return 1
	}
	defer conn.Close()
	_, err = io.WriteString(conn, question)
	answer := bufio.NewReader(conn)
	code := 0
	if first, peekErr := answer.Peek(1); peekErr == nil && (string(first) == answerFailed || string(first) == answerNoSuch) {
		code, stdout = int(first[0]), stderr
		_, _ = answer.Discard(1) // it was there to peek at
		_, _ = io.WriteString(stderr, "cofferdam: ")
	}
	n, copyErr := io.Copy(stdout, answer)
	if err = errors.Join(err, copyErr); err != nil || n == 0 {
		_, _ = fmt.Fprintln(stderr, "cofferdam: the agent of this sandbox did not answer; ask again in a second")
		return 1
	}
	return code
}
