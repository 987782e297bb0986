package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/api"
)

// staticProgram is embedded, which takes a package-level variable.
//
//go:embed static.py
var staticProgram string

// Where the static server listens in a sandbox, and what it shows.
const (
	plainPort    = 8000
	securePort   = 8001
	staticMount  = "/static"
	certificates = "certificate.pem" // of the static server, with its key
)

// staticDir lays the wheels out as a simple index of plain files.
func (b *bench) staticDir() (string, error) {
	dir := filepath.Join(b.dir, "static")
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	for _, w := range append([]wheel{b.registry.big}, b.wheels...) {
		page := fmt.Sprintf("<!DOCTYPE html><html><body><a href=\"../../files/%s#sha256=%s\">%s</a></body></html>\n", w.file, w.sha256, w.file)
		err := errors.Join(
			show(filepath.Join(dir, "simple", w.project, "index.html"), []byte(page)),
			show(filepath.Join(dir, "files", w.file), w.bytes),
		)
		if err != nil {
			return "", err
		}
	}
	return dir, showCertificate(dir)
}

// showCertificate puts a certificate for localhost, with its key, into a directory.
func showCertificate(dir string) error {
	_, leaf, err := certify("localhost")
	if err != nil {
		return err
	}
	text, err := bothPEM(leaf)
	if err != nil {
		return err
	}
	return show(filepath.Join(dir, certificates), text)
}

// show writes a file that sandboxes may read.
func show(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

func bothPEM(leaf tls.Certificate) ([]byte, error) {
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = errors.Join(
		pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}),
		pem.Encode(&out, &pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	)
	return out.Bytes(), err
}

// besideStatic makes a sandbox with a driver and the static server, ready.
// Destroy the sandbox with done.
func (b *bench) besideStatic(ctx context.Context, policy string) (box api.Sandbox, d *driver, done func() error, err error) {
	dir, err := b.staticDir()
	if err != nil {
		return box, nil, nil, err
	}
	box, err = b.sandbox(ctx, policy, api.Mount{Source: dir, Destination: staticMount})
	if err != nil {
		return box, nil, nil, err
	}
	destroy := func() error { return b.daemon.client.DestroySandbox(context.WithoutCancel(ctx), box.ID) }
	_, err = b.daemon.client.StartCommand(ctx, box.ID, api.StartCommand{Argv: []string{
		"python3", "-c", staticProgram, staticMount, strconv.Itoa(plainPort), strconv.Itoa(securePort), staticMount + "/" + certificates,
	}})
	if err == nil {
		d, err = b.startDriver(ctx, box.ID)
	}
	for _, port := range []int{plainPort, securePort} {
		if err == nil {
			_, err = d.do(ask{Verb: "listening", Port: port})
		}
	}
	if err != nil {
		return box, nil, nil, errors.Join(err, destroy())
	}
	return box, d, func() error { d.close(); return destroy() }, nil
}
