package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	peerRounds   = 20
	peerPatience = time.Minute
	// exitVerb is the argument with which the bench's own program does nothing: it
	// is the whole of the image that docker runs.
	exitVerb = "exit-at-once"
)

// peer is another program with which a command is run apart from the host.
type peer struct {
	name string
	once func(context.Context) (time.Duration, error)
}

// measurePeers takes turns with what else there is on this machine: bubblewrap, and
// docker with runc, of which a daemon of the bench's own is started. Neither has a kernel
// of its own for the command, a record or a policy; docker gets no network, as we do.
// Where neither is installed the table has no such rows.
func measurePeers(ctx context.Context, b *bench) (err error) {
	peers, stop, err := b.peersHere(ctx)
	if err != nil || len(peers) == 0 {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	ours, theirs := sample{}, make([]sample, len(peers))
	n := b.rounds(peerRounds)
	for i := range n + 1 { // the first warms up
		b.progress.round("create, beside docker and bwrap", i, n)
		c, err := b.createOnce(ctx)
		if err != nil {
			return err
		}
		if i > 0 {
			ours.add(c.first)
		}
		for j, p := range peers {
			took, err := p.once(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			if i > 0 {
				theirs[j].add(took)
			}
		}
	}
	for j, p := range peers {
		what := "create, first command finished"
		if j > 0 {
			what = "  the same"
		}
		b.table.add(figure(what, unitTime, ours).beside(p.name, theirs[j]))
	}
	return nil
}

// peersHere finds what is installed; stop ends what was started for it.
func (b *bench) peersHere(ctx context.Context) (peers []peer, stop func() error, err error) {
	stop = func() error { return nil }
	if path, err := exec.LookPath("bwrap"); err == nil {
		peers = append(peers, peer{"bwrap, all namespaces", func(ctx context.Context) (time.Duration, error) {
			return clocked(exec.CommandContext(ctx, path, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "/bin/true"))
		}})
	}
	if engine, err := exec.LookPath("dockerd"); err == nil {
		d, err := b.startDocker(ctx, engine)
		if err != nil {
			return nil, stop, err
		}
		peers, stop = append(peers, peer{"docker run --rm --network=none", d.run}), d.stop
	}
	return peers, stop, nil
}

// clocked runs a program to its end, which must be a good one.
func clocked(cmd *exec.Cmd) (time.Duration, error) {
	began := time.Now()
	said, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, bytes.TrimSpace(said))
	}
	return time.Since(began), nil
}

// docker is a daemon of the bench's own, with one image.
type docker struct {
	cmd    *exec.Cmd
	socket string
	log    string
	done   chan error
}

// startDocker starts a daemon that touches nothing of the host's network.
func (b *bench) startDocker(ctx context.Context, engine string) (*docker, error) {
	b.progress.say("starting docker")
	dir := filepath.Join(b.dir, "docker")
	if err := os.MkdirAll(dir, 0o711); err != nil { // another part had one
		return nil, err
	}
	d := &docker{socket: filepath.Join(dir, "docker.sock"), log: filepath.Join(dir, "log"), done: make(chan error, 1)}
	log, err := os.Create(d.log)
	if err != nil {
		return nil, err
	}
	d.cmd = exec.Command(engine, "--data-root="+filepath.Join(dir, "data"), "--exec-root="+filepath.Join(dir, "exec"),
		"--pidfile="+filepath.Join(dir, "pid"), "--host=unix://"+d.socket, "--bridge=none", "--iptables=false", "--ip6tables=false")
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := errors.Join(d.cmd.Start(), log.Close()); err != nil {
		return nil, err
	}
	go func() { d.done <- d.cmd.Wait() }()
	if err := d.await(ctx); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	image, err := onlyProgram()
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	load := exec.CommandContext(ctx, "docker", "--host=unix://"+d.socket, "import", "-", "peer")
	load.Stdin = image
	if _, err := clocked(load); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

// await returns when the daemon answers.
func (d *docker) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, peerPatience)
	defer cancel()
	for {
		err := exec.CommandContext(ctx, "docker", "--host=unix://"+d.socket, "version").Run()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(daemonPoll):
		case end := <-d.done:
			d.done <- end
			said, _ := os.ReadFile(d.log)
			return fmt.Errorf("dockerd ended (%w):\n%s", end, said)
		case <-ctx.Done():
			return fmt.Errorf("dockerd does not answer: %w", err)
		}
	}
}

func (d *docker) run(ctx context.Context) (time.Duration, error) {
	return clocked(exec.CommandContext(ctx, "docker", "--host=unix://"+d.socket, "run", "--rm", "--network=none", "--memory=1g", "--pids-limit=512", "peer", "/program", exitVerb))
}

// stop ends the daemon, and what it mounted with it.
func (d *docker) stop() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-d.done // however it ends
	return nil
}

// onlyProgram is an image with the bench's own program and nothing else.
func onlyProgram() (io.Reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return nil, err
	}
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	err = w.WriteHeader(&tar.Header{Name: "program", Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = w.Write(program)
	}
	return &image, errors.Join(err, w.Close())
}
