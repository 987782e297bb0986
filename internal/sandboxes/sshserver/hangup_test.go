package sshserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sshserver"
)

// distant is a sandbox with one command, which goes on elsewhere whoever follows it.
type distant struct {
	followed chan struct{}
	hungUp   chan struct{}
}

func (d *distant) Start(context.Context, sshserver.Command) (sshserver.Process, error) {
	return d, nil
}

func (d *distant) Dial(context.Context, int) (net.Conn, error) { return nil, io.EOF }

func (d *distant) Follow(ctx context.Context, _ io.Reader, _, _ io.Writer) (sshserver.Exit, error) {
	close(d.followed)
	<-ctx.Done()
	return sshserver.Exit{}, ctx.Err()
}

func (d *distant) Resize(context.Context, uint16, uint16) {}

func (d *distant) Signal(context.Context, string) {}

func (d *distant) HangUp(context.Context) { d.hungUp <- struct{}{} }

// TestAServerThatIsEndedHangsUp: a command hears once that its client has gone, whether that
// closed the connection or ended the server, which OpenSSH does with its proxy.
func TestAServerThatIsEndedHangsUp(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(c *ssh.Client, end context.CancelFunc){
		"the server is ended":      func(_ *ssh.Client, end context.CancelFunc) { end() },
		"the connection is closed": func(c *ssh.Client, _ context.CancelFunc) { _ = c.Close() },
	} {
		for range 20 { // the end of the connection and that of the server race
			in, d := serve(t), &distant{followed: make(chan struct{}), hungUp: make(chan struct{}, 2)}
			ctx, end := context.WithCancel(t.Context())
			here, there := pair(t)
			over := make(chan error, 1)
			go func() { over <- (&sshserver.Server{Sandbox: d, Keys: in.keys, Version: "test"}).Serve(ctx, there) }()
			conn, channels, requests, err := ssh.NewClientConn(here, "sb1", &ssh.ClientConfig{
				User: "user", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer(t, filepath.Join(in.folder, "id_ed25519")))},
				HostKeyCallback: ssh.FixedHostKey(signer(t, filepath.Join(in.folder, "host_key")).PublicKey()),
			})
			if err != nil {
				t.Fatal(err)
			}
			c := ssh.NewClient(conn, channels, requests)
			if err := session(t, c).Start("x"); err != nil {
				t.Fatal(err)
			}
			<-d.followed
			leave(c, end)
			if err := <-over; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if n := len(d.hungUp); n != 1 {
				t.Fatalf("%s: it was told %d times", name, n)
			}
			end()
			_ = c.Close()
		}
	}
}
