package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// door is a client on the host that talks to the gateway as the keeper does
// for a sandbox: the same request without sandbox and channel.
type door struct {
	host string
	http *http.Client
}

// openDoor asks one registry in the name of a living sandbox.
func (b *bench) openDoor(ctx context.Context, sandbox, host string) (*door, error) {
	roots, err := b.authority()
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return b.uplink(ctx, sandbox, host) }
	d := &door{host: host, http: &http.Client{Transport: &http.Transport{
		DialContext: dial, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: host},
		DisableCompression: true, MaxConnsPerHost: 1,
	}}}
	hello := map[string]string{indexHost: "/simple/small/", npmHost: "/-/ping"} // the connection is made
	_, err = d.get(ctx, hello[host])
	return d, err
}

// uplink does the keeper's part of a guest's stream.
func (b *bench) uplink(ctx context.Context, sandbox, host string) (net.Conn, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, "unix", b.daemon.paths.Uplink())
	if err != nil {
		return nil, err
	}
	frames := channel.NewConn(raw)
	var reply channel.Reply
	err = errors.Join(
		frames.WriteJSON(channel.FrameOpen, keeper.StreamIdentity{Sandbox: sandbox}),
		frames.WriteJSON(channel.FrameOpen, channel.Open{Kind: channel.OpenTCP, Name: host, Port: 443}),
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

// get fetches a page packed, as pip does; the body is read whole within the time,
// and not unpacked, which is the client's work.
func (d *door) get(ctx context.Context, path string) (time.Duration, error) {
	_, took, err := fetch(ctx, d.http, "https://"+d.host+path, map[string]string{"Accept": jsonIndex, "Accept-Encoding": "gzip"})
	return took, err
}

func (d *door) fetch(ctx context.Context, path string) ([]byte, time.Duration, error) {
	return fetch(ctx, d.http, "https://"+d.host+path, map[string]string{"Accept": jsonIndex})
}

// fetch gets a document; the body is read whole within the time.
func fetch(ctx context.Context, c *http.Client, url string, header map[string]string) ([]byte, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	began := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	body := bytes.NewBuffer(make([]byte, 0, max(0, resp.ContentLength)+bytes.MinRead))
	_, err = body.ReadFrom(resp.Body)
	took := time.Since(began)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", url, resp.Status, body)
	}
	return body.Bytes(), took, err
}

func (d *door) close() { d.http.CloseIdleConnections() }
