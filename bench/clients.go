package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/api"
)

// Where things are in the sandboxes of the projects.
const (
	serverMount  = "/bench"
	oursMount    = "/ours"
	plainMount   = "/plain"
	secureMount  = "/secure"
	serveVerb    = "serve"
	serverBinary = "bench"
	cacheDir     = "/home/agent/client-cache"
	workDir      = "/home/agent/project"
)

// plainBase and secureBase are where the static server in a sandbox has what is
// mounted.
func plainBase() string { return fmt.Sprintf("http://127.0.0.1:%d/", plainPort) }

func secureBase() string { return fmt.Sprintf("https://localhost:%d/", securePort) }

// oneClient is a client's frozen install, from the gateway and from the static
// server of the same files.
type oneClient struct {
	what     string
	project  project
	base     string // in the kept lockfile
	lockfile string
	policy   string
	command  string // sh, in a fresh copy of the project
	registry string // its flag for another registry, with a blank; "": the lockfile says it
	trusting string // its flag for a certificate that nobody signed
	rounds   int
	target   float64
}

func (b *bench) clients() []oneClient {
	npm := "npm ci --silent --cache " + cacheDir
	uv := "uv sync --quiet --frozen --no-cache --no-install-project --no-python-downloads --link-mode copy"
	return []oneClient{
		{"npm ci, %d packages, warm", b.npm, npmBase, "package-lock.json", "node", npm, " --registry ", " --strict-ssl=false", 5, 1.10},
		{"uv sync, %d packages, warm", b.uv, indexBase, "uv.lock", "python", uv, "", fmt.Sprintf(" --allow-insecure-host localhost:%d", securePort), 12, 1.10},
	}
}

// from is the command with another registry.
func (c oneClient) from(base string) string {
	if c.registry == "" {
		return c.command
	}
	return c.command + c.registry + base
}

// measureProjects has npm and uv install real projects as their lockfiles say.
func measureProjects(ctx context.Context, b *bench) error {
	for _, c := range b.clients() {
		if err := b.measureClient(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.lockfile, err)
		}
	}
	return nil
}

// measureClient takes turns between the three in one sandbox. Each time the
// project and the client's cache are fresh; the first turn fills the gateway's.
func (b *bench) measureClient(ctx context.Context, c oneClient) (err error) {
	if err := c.project.fetch(ctx, b); err != nil {
		return err
	}
	what := fmt.Sprintf(c.what, len(c.project.packages))
	d, done, err := b.besideServer(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	var ours, plain, secure sample
	n := b.rounds(c.rounds)
	for i := range n + 1 {
		b.progress.round(what, i, n)
		for _, from := range []struct {
			sample         *sample
			mount, command string
		}{
			{&ours, oursMount, c.command}, {&plain, plainMount, c.from(plainBase())}, {&secure, secureMount, c.from(secureBase()) + c.trusting},
		} {
			fresh := fmt.Sprintf("rm -rf %s %s && cp -r %s %s", workDir, cacheDir, from.mount, workDir)
			if _, err := d.do(shell(fresh)); err != nil {
				return err
			}
			got, err := d.do(shell("cd " + workDir + " && exec " + from.command))
			if err != nil {
				return err
			}
			if i > 0 {
				from.sample.add(got.took())
			}
		}
	}
	b.table.add(figure(what, unitTime, ours).beside("from a static server inside", plain).
		target(fmt.Sprintf("<= %.2f x", c.target), ours.median() <= c.target*plain.median()))
	b.table.add(figure("  the same", unitTime, ours).beside("from it over TLS", secure))
	return nil
}

func shell(text string) ask { return ask{Verb: "run", Argv: []string{"sh", "-c", text}} }

// besideServer makes a sandbox with a driver, the project with a lockfile for
// either side, and the static server, ready. Destroy the sandbox with done.
func (b *bench) besideServer(ctx context.Context, c oneClient) (d *driver, done func() error, err error) {
	dir := filepath.Join(b.dir, c.project.client)
	server, err := b.serverDir()
	if err == nil {
		err = errors.Join(
			c.project.locked(filepath.Join(dir, "ours"), c.base, c.base, c.lockfile),
			c.project.locked(filepath.Join(dir, "plain"), c.base, plainBase(), c.lockfile),
			c.project.locked(filepath.Join(dir, "secure"), c.base, secureBase(), c.lockfile),
		)
	}
	if err != nil {
		return nil, nil, err
	}
	return b.serving(ctx, c.project.policy(c.policy),
		api.Mount{Source: server, Destination: serverMount}, api.Mount{Source: c.project.dir, Destination: staticMount},
		api.Mount{Source: filepath.Join(dir, "ours"), Destination: oursMount}, api.Mount{Source: filepath.Join(dir, "plain"), Destination: plainMount},
		api.Mount{Source: filepath.Join(dir, "secure"), Destination: secureMount})
}

// serving makes a sandbox with a driver and a static server of what is mounted
// at staticMount.
func (b *bench) serving(ctx context.Context, policy string, mounts ...api.Mount) (d *driver, done func() error, err error) {
	box, err := b.sandbox(ctx, policy, mounts...)
	if err != nil {
		return nil, nil, err
	}
	destroy := func() error { return b.daemon.client.DestroySandbox(context.WithoutCancel(ctx), box.ID) }
	_, err = b.daemon.client.StartCommand(ctx, box.ID, api.StartCommand{Argv: []string{
		serverMount + "/" + serverBinary, serveVerb, staticMount, fmt.Sprintf("127.0.0.1:%d", plainPort),
		fmt.Sprintf("127.0.0.1:%d", securePort), serverMount + "/" + certificates,
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
		return nil, nil, errors.Join(err, destroy())
	}
	return d, func() error { d.close(); return destroy() }, nil
}

// serverDir has this program, which is the static server too, and a certificate
// where sandboxes can have them.
func (b *bench) serverDir() (string, error) {
	dir := filepath.Join(b.dir, "server")
	path := filepath.Join(dir, serverBinary)
	if _, err := os.Stat(path); err == nil {
		return dir, nil
	}
	own, err := os.Executable()
	if err != nil {
		return "", err
	}
	from, err := os.Open(own)
	if err != nil {
		return "", err
	}
	defer func() { _ = from.Close() }() // read only
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return "", err
	}
	return dir, showCertificate(dir)
}
