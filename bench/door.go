package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// door is a client on the host that talks to the gateway as the keeper does
// for a sandbox: the same request without sandbox and channel.
type door struct {
	http *http.Client
}

// openDoor asks in the name of a living sandbox.
func (b *bench) openDoor(ctx context.Context, sandbox string) (*door, error) {
	roots, err := b.authority()
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return b.uplink(ctx, sandbox) }
	d := &door{http: &http.Client{Transport: &http.Transport{
		DialContext: dial, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: indexHost},
		DisableCompression: true, MaxConnsPerHost: 1,
	}}}
	_, err = d.get(ctx, "/simple/small/")
	return d, err
}

// uplink does the keeper's part of a guest's stream.
func (b *bench) uplink(ctx context.Context, sandbox string) (net.Conn, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, "unix", b.daemon.paths.Uplink())
	if err != nil {
		return nil, err
	}
	frames := channel.NewConn(raw)
	var reply channel.Reply
	err = errors.Join(
		frames.WriteJSON(channel.FrameOpen, keeper.StreamIdentity{Sandbox: sandbox}),
		frames.WriteJSON(channel.FrameOpen, channel.Open{Kind: channel.OpenTCP, Name: indexHost, Port: 443}),
		frames.ReadJSON(channel.FrameReply, &reply),
	)
	if err == nil && !reply.OK {
		err = fmt.Errorf("the gateway refuses: %s", reply.Error)
	}
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return raw, nil
}

// authority is the installation's own CA, as a sandbox has it.
func (b *bench) authority() (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	paths, err := filepath.Glob(filepath.Join(b.daemon.paths.Authority(), "*.pem"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		roots.AppendCertsFromPEM(text)
	}
	return roots, nil
}

// get fetches a page; the body is read whole within the time.
func (d *door) get(ctx context.Context, path string) (time.Duration, error) {
	_, took, err := d.fetch(ctx, path)
	return took, err
}

func (d *door) fetch(ctx context.Context, path string) ([]byte, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+indexHost+path, nil)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Accept", jsonIndex)
	began := time.Now()
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	body := make([]byte, max(0, resp.ContentLength))
	_, err = io.ReadFull(resp.Body, body)
	took := time.Since(began)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, resp.Status)
	}
	return body, took, err
}

func (d *door) close() { d.http.CloseIdleConnections() }
