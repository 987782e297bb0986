package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// jupyterProgram is embedded, which takes a package-level variable.
//
//go:embed jupyter.py
var jupyterProgram string

// Targets and rounds of the part interpreter.
const (
	cellTarget      = 5.0  // ms, a cell in a warm kernel
	firstCellTarget = 60.0 // ms, the first answer after a claim
	cellRounds      = 300
	firstCellRounds = 10
	manyContexts    = 20
	cellsEach       = 20 // of one round of cells at once
	cellPool        = 2
)

// measureInterpreter measures cells over the wire of the interpreter's SDKs.
func measureInterpreter(ctx context.Context, b *bench) (err error) {
	l, err := b.startCells(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.daemon.stop()) }()
	if err := l.firstCells(ctx); err != nil {
		return err
	}
	box, err := l.wire.createOf(ctx, "code-interpreter", "pooled")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.wire.kill(ctx, box)) }()
	if err := l.warmCells(ctx, box); err != nil {
		return err
	}
	return l.manyCells(ctx, box)
}

// startCells starts an installation of the part's own, with sandboxes that have kernels.
func (b *bench) startCells(ctx context.Context) (*life, error) {
	b.progress.say("the template code-interpreter, built if there is none of this version")
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	own := &bench{opts: b.opts, progress: b.progress, dir: filepath.Join(b.dir, "cells"), home: b.home, registry: b.registry}
	if err := os.Mkdir(own.dir, 0o711); err != nil { // the gateway, another user, passes through
		return nil, err
	}
	if err := own.cofferdam(ctx, b.home, "template", "build", "--if-needed", "code-interpreter"); err != nil {
		return nil, err
	}
	if err := own.buildTemplate(ctx, b.home); err != nil {
		return nil, err
	}
	if err := b.registry.configure(own.state(), own.dir, dockerHost(own.dir)); err != nil {
		return nil, err
	}
	if err := appendTo(filepath.Join(own.state(), "config.yaml"), fmt.Sprintf(
		"listen: { address: %q, requests_per_second: 100000, burst: 100000 }\npool: [ { template: code-interpreter, policy: pooled, size: %d } ]\n", address, cellPool)); err != nil {
		return nil, err
	}
	d, err := own.startDaemon(ctx, "c")
	if err != nil {
		return nil, err
	}
	key, err := clientOf(ctx, d)
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return &life{bench: b, daemon: d, wire: newWire("http://"+address, key)}, nil
}

// firstCells: from the answer to a create out of the pool to the first cell's result.
func (l *life) firstCells(ctx context.Context) error {
	var first, whole sample
	n := l.rounds(firstCellRounds)
	for i := range n + 1 {
		l.progress.round("first cells", i, n)
		if err := l.awaitPool(ctx, cellPool); err != nil {
			return err
		}
		began := time.Now()
		box, err := l.wire.createOf(ctx, "code-interpreter", "pooled")
		if err != nil {
			return err
		}
		claimed := time.Now()
		err = l.wire.cell(ctx, box, "", "1 + 1", "2")
		if i > 0 {
			first.add(time.Since(claimed))
			whole.add(time.Since(began))
		}
		if err := errors.Join(err, l.wire.kill(ctx, box)); err != nil {
			return err
		}
	}
	l.table.add(figure("first cell after a claim", unitTime, first).target(fmt.Sprintf("<= %.0f", firstCellTarget), first.median() <= firstCellTarget))
	l.table.add(figure("  with the claim", unitTime, whole))
	return nil
}

// warmCells takes turns between a cell of a warm kernel and one of a plain Jupyter kernel.
func (l *life) warmCells(ctx context.Context, box wireBox) (err error) {
	jupyter, err := l.startJupyter(ctx)
	if err != nil {
		return err
	}
	defer jupyter.close()
	var ours, theirs, script sample
	n := l.rounds(cellRounds)
	for i := range n + 1 {
		l.progress.round("cells", i, n)
		began := time.Now()
		if err := l.wire.cell(ctx, box, "", "1 + 1", "2"); err != nil {
			return err
		}
		took := time.Since(began)
		began = time.Now()
		if err := l.wire.cell(ctx, box, "javascript", "1 + 1", "2"); err != nil {
			return err
		}
		byNode := time.Since(began)
		plain, err := jupyter.cell()
		if err != nil {
			return err
		}
		if i > 0 {
			ours.add(took)
			script.add(byNode)
			theirs.add(plain)
		}
	}
	l.table.add(figure("a cell, 1 + 1 in Python", unitTime, ours).beside("a plain Jupyter kernel on the host", theirs).
		target(fmt.Sprintf("<= %.0f", cellTarget), ours.median() <= cellTarget))
	l.table.add(figure("  in JavaScript", unitTime, script))
	return nil
}

// manyCells runs cells one after the other in one context, and in several at once.
func (l *life) manyCells(ctx context.Context, box wireBox) error {
	contexts := []string{"default-python"}
	for i := range manyContexts - 1 {
		l.progress.round("contexts", i, manyContexts)
		id, err := l.wire.context(ctx, box)
		if err != nil {
			return err
		}
		contexts = append(contexts, id)
	}
	for _, many := range []int{1, manyContexts} {
		var rate sample
		for i := range l.rounds(5) {
			l.progress.round(fmt.Sprintf("cells in %d contexts", many), i, l.rounds(5))
			began := time.Now()
			_, err := atOnce(many, func(at int) (time.Duration, error) {
				for range cellsEach {
					if err := l.wire.cellIn(ctx, box, contexts[at], "1 + 1", "2"); err != nil {
						return 0, err
					}
				}
				return 0, nil
			})
			if err != nil {
				return err
			}
			rate = append(rate, float64(many*cellsEach)/time.Since(began).Seconds())
		}
		l.table.add(figure(fmt.Sprintf("cells in %d contexts", many), unitRate, rate))
	}
	return nil
}

// interpreter asks the interpreter of a sandbox. The caller closes the body.
func (w *wire) interpreter(ctx context.Context, box wireBox, path string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"E2b-Sandbox-Id": box.ID, "E2b-Sandbox-Port": "49999", "X-Access-Token": box.Token, "Content-Type": "application/json",
	} {
		req.Header.Set(name, value)
	}
	resp, err := w.http.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		_ = resp.Body.Close()
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, answer)
	}
	return resp, err
}

// context makes a context of Python and returns its id.
func (w *wire) context(ctx context.Context, box wireBox) (string, error) {
	resp, err := w.interpreter(ctx, box, "/contexts", struct{}{})
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var made struct {
		ID string `json:"id"`
	}
	return made.ID, json.NewDecoder(resp.Body).Decode(&made)
}

// cell runs one in a language's default context; its value must be the text wanted.
func (w *wire) cell(ctx context.Context, box wireBox, language, code, wanted string) error {
	return w.execute(ctx, box, map[string]string{"code": code, "language": language}, wanted)
}

// cellIn is cell in a context.
func (w *wire) cellIn(ctx context.Context, box wireBox, id, code, wanted string) error {
	return w.execute(ctx, box, map[string]string{"code": code, "context_id": id}, wanted)
}

func (w *wire) execute(ctx context.Context, box wireBox, body map[string]string, wanted string) error {
	resp, err := w.interpreter(ctx, box, "/execute", body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Contains(said, []byte(`"text":"`+wanted+`"`)) {
		err = fmt.Errorf("the cell %q said %.300s", body["code"], said)
	}
	return err
}

// jupyter is a plain kernel on the host.
type jupyter struct{ *pythonProgram }

// startJupyter starts one; what it needs is installed once, by this machine's pip.
func (b *bench) startJupyter(ctx context.Context) (jupyter, error) {
	dir, err := pythonOf(ctx, b, "jupyter", "ipykernel, jupyter_client", "ipykernel==7.4.0", "jupyter_client==8.10.0")
	if err != nil {
		return jupyter{}, err
	}
	p, err := startPython(ctx, "the Jupyter kernel", dir, jupyterProgram, []string{"JUPYTER_PATH=" + filepath.Join(dir, "share", "jupyter")})
	return jupyter{p}, err
}

// cell runs 1 + 1.
func (j jupyter) cell() (time.Duration, error) {
	said, err := j.measure()
	if err != nil {
		return 0, err
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(string(said)), 64)
	return time.Duration(seconds * float64(time.Second)), err
}
