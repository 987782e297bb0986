package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
)

// fileTarget appends to a file, through no link that a sandbox could have left on the way.
type fileTarget struct {
	path    string
	written func() ([]hostpath.Tree, error)
}

func (f fileTarget) targetName() string { return f.path }

func (f fileTarget) publishNote(_ context.Context, note []byte) error {
	trees, err := f.written()
	if err != nil {
		return err
	}
	entry, err := hostpath.Find(f.path, trees)
	if err != nil {
		return err
	}
	file, err := entry.OpenFile(os.O_WRONLY|os.O_APPEND, 0o644) // a checkpoint is meant to be read
	if err != nil {
		return err
	}
	_, err = file.Write(append(bytes.Clone(note), '\n'))
	return errors.Join(err, file.Sync(), file.Close())
}

// commandTarget starts a program, without a shell, that does not lie where a sandbox may write, or could.
type commandTarget struct {
	argv    []string
	written func() ([]hostpath.Tree, error)
	sums    *executable.Sums
}

func (c commandTarget) targetName() string { return c.argv[0] }

func (c commandTarget) publishNote(ctx context.Context, note []byte) error {
	trees, err := c.written()
	if err != nil {
		return err
	}
	if err := executable.CheckStrangers(c.argv, ""); err != nil {
		return err
	}
	if err := executable.CheckPlaces(executable.Places(c.argv, "", nil), trees); err != nil {
		return err
	}
	program, err := c.sums.Open(c.argv, "", trees)
	if err != nil {
		return err
	}
	defer program.Close()
	cmd := program.CommandContext(ctx)
	cmd.Dir, cmd.Env = "/", executable.Environment(os.Environ(), trees)
	cmd.Stdin = bytes.NewReader(note)
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &limitedBuffer{buffer: &said}
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) { // that one ended well, and something holds its output
		if text := strings.TrimSpace(said.String()); text != "" {
			return fmt.Errorf("%w: %.200q", err, text)
		}
		return err
	}
	return nil
}

// limitedBuffer keeps the beginning of what is written.
type limitedBuffer struct{ buffer *bytes.Buffer }

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if room := maxFailure - l.buffer.Len(); room > 0 {
		l.buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// urlTarget posts.
type urlTarget struct {
	url    string
	shown  string // without credentials and query
	client *http.Client
}

func newURLTarget(address string) urlTarget {
	shown := "an URL"
	if u, err := url.Parse(address); err == nil {
		shown = u.Scheme + "://" + u.Host + u.Path
	}
	return urlTarget{url: address, shown: shown, client: &http.Client{
		// A redirect could lead a checkpoint anywhere; the operator names the place.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
	}}
}

func (u urlTarget) targetName() string { return u.shown }

func (u urlTarget) publishNote(ctx context.Context, note []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url, bytes.NewReader(note))
	if err != nil {
		return errors.New("the URL is not one")
	}
	req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	resp, err := u.client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			return failed.Err // without the URL, which may have a password in it
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("it answered %d", resp.StatusCode) // its words may be what it was shown
	}
	return nil
}
