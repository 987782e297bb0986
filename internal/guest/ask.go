package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
)

const help = `In this sandbox, cofferdam can:

  cofferdam why [--json]   say which packages and connections were refused last, and why
  cofferdam request ...    ask for packages before anything fails (--help says more)
  cofferdam help           print this

What is allowed is decided outside the sandbox and can't be changed from here.
`

// Ask is the command line that processes in the sandbox have: why, request
// and help.
// It returns the exit code: 0, 1 when the agent can't be asked, 2 for usage.
func Ask(ctx context.Context, args []string, socket string, stdout, stderr io.Writer) int {
	switch {
	case slices.Equal(args, []string{"why"}):
		return ask(ctx, questionWhy+"\n", socket, stdout, stderr)
	case slices.Equal(args, []string{"why", "--json"}):
		return ask(ctx, questionWhyJSON+"\n", socket, stdout, stderr)
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

func ask(ctx context.Context, question, socket string, stdout, stderr io.Writer) int {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "cofferdam: the agent of this sandbox can't be asked: %v\n", err)
		return 1
	}
	defer conn.Close()
	_, err = io.WriteString(conn, question)
	n, copyErr := io.Copy(stdout, conn)
	if err = errors.Join(err, copyErr); err != nil || n == 0 {
		_, _ = fmt.Fprintln(stderr, "cofferdam: the agent of this sandbox did not answer; ask again in a second")
		return 1
	}
	return 0
}
