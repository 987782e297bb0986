// Package client is the Go client of /v1, the daemon's own interface: over its
// Unix socket (New), or over the network with a token (Open, FromEnv). It uses the
// standard library only, so that a program can import it without anything else of
// Cofferdam.
//
// An attachment is a connection to one command of a sandbox. The command's output comes as events;
// its input, window size and signals go the other way. An offset counts a command's output bytes,
// stdout and stderr together, and is where a new attachment goes on after a lost one.
//
// One use, end to end:
//
//	c := client.New("/run/cofferdam/daemon.sock")
//	box, err := c.CreateSandbox(ctx, api.CreateSandbox{Policy: doc})
//	cmd, err := c.StartCommand(ctx, box.ID, api.StartCommand{Argv: []string{"python3", "-V"}})
//	att, err := c.Attach(ctx, box.ID, cmd.ID, 0)
//	for event, err := range att.Events() {
//		...
//	}
//	err = c.DestroySandbox(ctx, box.ID)
//
// Over the network it begins with a token that the daemon's host has made
// (cofferdam token create), and everything is narrowed to what is the token's own:
//
//	c, err := client.Open(client.Remote{URL: "https://sandboxes.example:7433", Token: secret})
//	box, err := c.CreateSandbox(ctx, api.CreateSandbox{Policy: api.Policy{Name: "data"}, Linger: true,
//		Lifetime: api.Lifetime{TTLSeconds: 3600}})
//	err = c.WriteFile(ctx, box.ID, client.File{Path: "task.py"}, strings.NewReader(program))
//
// An answer that is a refusal is an *Error with the daemon's sentence and
// status. Where nothing listens on the socket, errors.Is(err, ErrNoDaemon).
// Contexts bound every call; none has a time-out of its own, because making a
// sandbox or a template takes as long as it takes.
package client
