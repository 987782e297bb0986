package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

const (
	downloadRounds = 20
	bigPolicy      = "name: bench-download\npackages:\n  default: deny\nallowed_packages:\n  python:\n    - name: big\n"
)

// measureDownload has curl fetch the 100 MB artifact: from the gateway, and
// over TLS and plainly from a static server in the same sandbox; beside them,
// the bare channel on the host.
func measureDownload(ctx context.Context, b *bench) (err error) {
	_, d, done, err := b.besideStatic(ctx, bigPolicy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	path := "/files/" + b.registry.big.file
	var ours, inside, plain, bare sample
	n := b.rounds(downloadRounds)
	for i := range n + 1 {
		b.progress.round("100 MB", i, n)
		gateway, err := d.do(curl("https://" + indexHost + path))
		if err != nil {
			return err
		}
		secure, err := d.do(curl("https://127.0.0.1:" + strconv.Itoa(securePort) + path))
		if err != nil {
			return err
		}
		open, err := d.do(curl("http://127.0.0.1:" + strconv.Itoa(plainPort) + path))
		if err != nil {
			return err
		}
		floor, err := bareChannel(bigBytes)
		if err != nil {
			return err
		}
		if i > 0 {
			ours = append(ours, speed(gateway.took()))
			inside = append(inside, speed(secure.took()))
			plain = append(plain, speed(open.took()))
			bare = append(bare, speed(floor))
		}
	}
	b.table.add(figure("100 MB artifact, warm, curl inside", unitSpeed, ours).beside("TLS server inside", inside))
	b.table.add(figure("  plain HTTP, all inside", unitSpeed, plain))
	b.table.add(figure("  bare channel, both ends on the host", unitSpeed, bare))
	return nil
}

func curl(url string) ask {
	return ask{Verb: "run", Argv: []string{"curl", "--silent", "--insecure", "--show-error", "--fail", "--output", "/dev/null", url}}
}

func speed(d time.Duration) float64 { return float64(bigBytes) / 1e6 / d.Seconds() }

// bareChannel sends size bytes from a host session to a guest session over a
// socketpair, as a download goes.
func bareChannel(size int64) (time.Duration, error) {
	wire, far, err := channel.SocketPair()
	if err != nil {
		return 0, err
	}
	host, err := channel.NewHostSession(wire)
	if err != nil {
		return 0, errors.Join(err, wire.Close(), far.Close())
	}
	defer func() { _ = host.Close() }()
	end, err := net.FileConn(far) // the file's own reads can't be interrupted
	if err := errors.Join(err, far.Close()); err != nil {
		return 0, err
	}
	guest, err := channel.NewGuestSession(end)
	if err != nil {
		return 0, errors.Join(err, end.Close())
	}
	defer func() { _ = guest.Close() }()
	began := time.Now()
	sent := make(chan error, 1)
	go func() { sent <- sendAll(host, size) }()
	stream, err := guest.Accept()
	if err != nil {
		return 0, err
	}
	got, err := io.Copy(io.Discard, struct{ io.Reader }{stream.Raw()})
	if err := errors.Join(err, <-sent); err != nil {
		return 0, err
	}
	if got != size {
		return 0, fmt.Errorf("the bare channel brought %d of %d bytes", got, size)
	}
	return time.Since(began), nil
}

func sendAll(session *channel.Session, size int64) error {
	stream, err := session.Open(context.Background())
	if err != nil {
		return err
	}
	chunk := make([]byte, 64<<10)
	for left := size; left > 0; {
		n, err := stream.Raw().Write(chunk[:min(left, int64(len(chunk)))])
		if err != nil {
			return err
		}
		left -= int64(n)
	}
	return stream.CloseWrite()
}
