package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// gatewayClient speaks to the gateway as a package client in a sandbox does: a
// stream of the uplink with an identity in front, TLS under the installation's
// CA, HTTP/1.1.
type gatewayClient struct {
	protocol ecosystem.Protocol
	index    *url.URL // as sandboxes see it, with a slash at its end
	http     *http.Transport
}

// Limits of what the gateway answers: a page, and a tool's file.
const (
	maxPage     = 256 << 20
	maxToolFile = 1 << 30
)

func newGatewayClient(uplink, sandbox string, ca []byte, up upstream.Config) (*gatewayClient, error) {
	index, err := hostOf(up)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fault.New(fault.ErrUnavailable, "the gateway's CA is not known")
	}
	protocol := protocolOf(up.Ecosystem)
	if protocol == nil {
		return nil, fault.Invalid("no template's tools come from the registry of %s", up.Ecosystem)
	}
	return &gatewayClient{protocol: protocol, index: index.JoinPath("/"), http: &http.Transport{
		DialContext: safego.ShieldDial(func(ctx context.Context, _, address string) (net.Conn, error) {
			return dialUplink(ctx, uplink, sandbox, address)
		}),
		TLSClientConfig:       &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS13},
		DisableCompression:    true,
		ResponseHeaderTimeout: toolsTimeout, // the gateway fetches whole before it answers
	}}, nil
}

func (c *gatewayClient) close() { c.http.CloseIdleConnections() }

// dialUplink opens a stream to a name as the keeper would for a guest.
func dialUplink(ctx context.Context, uplink, sandbox, address string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", uplink)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the gateway is not there")
	}
	frames := channel.NewConn(conn)
	var reply channel.Reply
	err = errors.Join(
		conn.SetDeadline(time.Now().Add(trustTimeout)),
		frames.WriteJSON(channel.FrameOpen, keeper.StreamIdentity{Sandbox: sandbox}),
		frames.WriteJSON(channel.FrameOpen, channel.Open{Kind: channel.OpenTCP, Name: host, Port: port}),
	)
	if err == nil {
		err = frames.ReadJSON(channel.FrameReply, &reply)
	}
	if err == nil && !reply.OK {
		err = fault.New(fault.ErrUnavailable, "the gateway does not answer for %s: %s", host, reply.Error)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// getURL asks for a URL; what is no success is an error with the gateway's reason.
func (c *gatewayClient) getURL(ctx context.Context, location, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "template-build")
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the gateway does not answer")
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fault.New(fault.ErrUnavailable, "the gateway answers %s", resp.Status)
	}
	return resp, nil
}

// fetchPage asks for a project's page, as the ecosystem's protocol has it.
func (c *gatewayClient) fetchPage(ctx context.Context, project string) (*ecosystem.Index, error) {
	ask := c.protocol.IndexAsk(c.index.String(), project)
	resp, err := c.getURL(ctx, ask.URL, ask.Accept)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the page of %s can't be read", project)
	}
	return c.protocol.ParseIndex(project, ecosystem.PageOf(ask.URL, resp.Header.Get("Content-Type"), body), &ecosystem.MemoryRows{})
}

// locate finds an artifact's URL on its project's page.
func (c *gatewayClient) locate(ctx context.Context, a template.Artifact) (string, error) {
	index, err := c.fetchPage(ctx, a.Name)
	if err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "%s %s is not available", a.Name, a.Version)
	}
	for _, f := range index.Files {
		if f.Version == a.Version && f.Name == a.File {
			return f.URL, nil
		}
	}
	return "", fault.New(fault.ErrUnavailable, "the registry does not list %s, in which %s %s comes", a.File, a.Name, a.Version)
}

// download writes what is at a URL to a new file.
func (c *gatewayClient) download(ctx context.Context, location, path string) error {
	resp, err := c.getURL(ctx, location, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(resp.Body, maxToolFile+1))
	if err == nil && (n > maxToolFile || (resp.ContentLength >= 0 && n != resp.ContentLength)) {
		err = fault.New(fault.ErrUnavailable, "%s came with %d bytes", strings.TrimPrefix(path, "/"), n)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the download was cut short")
	}
	return nil
}
