package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
)

const (
	installRatio  = 1.10
	installRounds = 25
	staticPort    = 8000
)

// measureInstall has pip install the ten packages into fresh directories, in
// turn from the gateway and from a plain static index in the same sandbox.
func measureInstall(ctx context.Context, b *bench) (err error) {
	static, err := b.staticIndex()
	if err != nil {
		return err
	}
	box, err := b.sandbox(ctx, tenPolicy(b.wheels), api.Mount{Source: static, Destination: "/static"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.daemon.client.DestroySandbox(ctx, box.ID)) }()
	d, err := b.startStatic(ctx, box.ID)
	if err != nil {
		return err
	}
	defer d.close()
	var ours, theirs sample
	n := b.rounds(installRounds)
	for i := range n + 1 {
		b.progress.round("pip install of ten packages", i, n)
		for _, from := range []struct {
			sample *sample
			index  string
		}{{&ours, "https://" + indexHost}, {&theirs, fmt.Sprintf("http://127.0.0.1:%d", staticPort)}} {
			took, err := b.install(d, from.index+"/simple/")
			if err != nil {
				return err
			}
			if i > 0 {
				from.sample.add(took)
			}
		}
	}
	b.table.add(figure("pip install, ten packages, warm", unitTime, ours).beside("the same, static index inside", theirs).
		target(fmt.Sprintf("<= %.2f x", installRatio), ours.median() <= installRatio*theirs.median()))
	return nil
}

// install times one pip; nothing of it stays. pip's own cache is off, so that
// it is the gateway's that is measured.
func (b *bench) install(d *driver, index string) (time.Duration, error) {
	const target = "/home/agent/target"
	argv := []string{"pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check", "--target", target, "--index-url", index}
	for _, w := range b.wheels {
		argv = append(argv, w.project)
	}
	got, err := d.do(ask{Verb: "run", Argv: argv})
	if err != nil {
		return 0, err
	}
	_, err = d.do(ask{Verb: "run", Argv: []string{"rm", "-r", target}})
	return got.took(), err
}

// startStatic starts the static index and a driver, and returns when both are
// ready.
func (b *bench) startStatic(ctx context.Context, sandbox string) (*driver, error) {
	_, err := b.daemon.client.StartCommand(ctx, sandbox, api.StartCommand{Argv: []string{
		"python3", "-m", "http.server", "--protocol", "HTTP/1.1", "--bind", "127.0.0.1", "--directory", "/static", strconv.Itoa(staticPort),
	}})
	if err != nil {
		return nil, err
	}
	d, err := b.startDriver(ctx, sandbox)
	if err != nil {
		return nil, err
	}
	if _, err := d.do(ask{Verb: "listening", Port: staticPort}); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// tenPolicy allows the ten packages by name.
func tenPolicy(wheels []wheel) string {
	text := "name: bench-install\npackages:\n  default: deny\nallowed_packages:\n  python:\n"
	for _, w := range wheels {
		text += "    - name: " + w.project + "\n"
	}
	return text
}

// staticIndex lays the wheels out as a simple index of plain files.
func (b *bench) staticIndex() (string, error) {
	dir := filepath.Join(b.dir, "static")
	for _, w := range append([]wheel{b.registry.big}, b.wheels...) {
		page := fmt.Sprintf("<!DOCTYPE html><html><body><a href=\"../../files/%s#sha256=%s\">%s</a></body></html>\n", w.file, w.sha256, w.file)
		for path, content := range map[string][]byte{
			filepath.Join(dir, "simple", w.project, "index.html"): []byte(page),
			filepath.Join(dir, "files", w.file):                   w.bytes,
		} {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // shown to sandboxes
				return "", err
			}
			if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // as above
				return "", err
			}
		}
	}
	return dir, nil
}
