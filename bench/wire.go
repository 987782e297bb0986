package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// wire is a client of the daemon's E2B wire, which sends what the SDKs send.
type wire struct {
	base, key string
	http      *http.Client
}

// wireBox is a sandbox, as a create or fork gives it.
type wireBox struct {
	ID    string `json:"sandboxID"`
	Token string `json:"envdAccessToken"`
}

func newWire(base, key string) *wire {
	return &wire{base: base, key: key, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}}
}

// control asks the control plane; a status of 300 and more is an error.
func (w *wire) control(ctx context.Context, method, path string, body, out any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, w.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("X-API-Key", w.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, answer)
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}

func (w *wire) create(ctx context.Context, policy string) (box wireBox, err error) {
	return w.createOf(ctx, "base", policy)
}

// createOf makes a sandbox of a template, or of a snapshot.
func (w *wire) createOf(ctx context.Context, template, policy string) (box wireBox, err error) {
	return box, w.control(ctx, http.MethodPost, "/v2/sandboxes", map[string]any{
		"templateID": template, "timeout": 3600, "metadata": map[string]string{"policy": policy},
	}, &box)
}

func (w *wire) kill(ctx context.Context, box wireBox) error {
	return w.control(ctx, http.MethodDelete, "/sandboxes/"+box.ID, nil, nil)
}

func (w *wire) pause(ctx context.Context, box wireBox) error {
	return w.control(ctx, http.MethodPost, "/sandboxes/"+box.ID+"/pause", struct{}{}, nil)
}

// resume gives the sandbox with its new token.
func (w *wire) resume(ctx context.Context, box wireBox) (again wireBox, err error) {
	return again, w.control(ctx, http.MethodPost, "/v2/sandboxes/"+box.ID+"/connect", map[string]int{"timeout": 3600}, &again)
}

func (w *wire) snapshot(ctx context.Context, box wireBox) (id string, err error) {
	var made struct {
		ID string `json:"snapshotID"`
	}
	err = w.control(ctx, http.MethodPost, "/sandboxes/"+box.ID+"/snapshots", struct{}{}, &made)
	return made.ID, err
}

func (w *wire) dropSnapshot(ctx context.Context, id string) error {
	return w.control(ctx, http.MethodDelete, "/templates/"+id, nil, nil)
}

func (w *wire) fork(ctx context.Context, box wireBox, count int) ([]wireBox, error) {
	var made []struct {
		Sandbox *wireBox        `json:"sandbox"`
		Error   json.RawMessage `json:"error"`
	}
	if err := w.control(ctx, http.MethodPost, "/sandboxes/"+box.ID+"/fork", map[string]int{"count": count, "timeout": 3600}, &made); err != nil {
		return nil, err
	}
	var boxes []wireBox
	var errs []error
	for _, one := range made {
		if one.Sandbox == nil {
			errs = append(errs, fmt.Errorf("a fork failed: %s", one.Error))
			continue
		}
		boxes = append(boxes, *one.Sandbox)
	}
	return boxes, errors.Join(errs...)
}

// data asks the data plane of a sandbox. The caller closes the body.
func (w *wire) data(ctx context.Context, box wireBox, method, path, contentType string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.base+path, body)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"E2b-Sandbox-Id": box.ID, "E2b-Sandbox-Port": "49983", "X-Access-Token": box.Token, "Content-Type": contentType,
		"Connect-Protocol-Version": "1",
	} {
		req.Header.Set(name, value)
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	return resp, nil
}

// run starts a program and returns when its end has been told; it must be 0.
func (w *wire) run(ctx context.Context, box wireBox, program string, args ...string) error {
	text, err := json.Marshal(map[string]any{"process": map[string]any{"cmd": program, "args": args}, "stdin": false})
	if err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text)))
	resp, err := w.data(ctx, box, http.MethodPost, "/process.Process/Start", "application/connect+json", bytes.NewReader(append(frame, text...)))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	ended := false
	for {
		flags, message, err := readEnvelope(resp.Body)
		if err != nil {
			return err
		}
		if flags&2 != 0 {
			if !ended {
				return fmt.Errorf("the stream of %s ended before it: %s", program, message)
			}
			return nil
		}
		var event struct {
			Event struct {
				End *struct {
					ExitCode int    `json:"exitCode"`
					Status   string `json:"status"`
				} `json:"end"`
			} `json:"event"`
		}
		if err := json.Unmarshal(message, &event); err != nil {
			return err
		}
		if end := event.Event.End; end != nil {
			ended = true
			if end.ExitCode != 0 {
				return fmt.Errorf("%s ended with %s", program, end.Status)
			}
		}
	}
}

// readEnvelope reads one message of a Connect stream.
func readEnvelope(from io.Reader) (flags byte, message []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, nil, err
	}
	message = make([]byte, min(binary.BigEndian.Uint32(head[1:]), 1<<20))
	_, err = io.ReadFull(from, message)
	return head[0], message, err
}

// put and get move a file.
func (w *wire) put(ctx context.Context, box wireBox, path string, content io.Reader) error {
	resp, err := w.data(ctx, box, http.MethodPost, "/files?path="+url.QueryEscape(path), "application/octet-stream", content)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (w *wire) get(ctx context.Context, box wireBox, path string) (int64, error) {
	resp, err := w.data(ctx, box, http.MethodGet, "/files?path="+url.QueryEscape(path), "", http.NoBody)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, resp.Body)
	return n, errors.Join(err, resp.Body.Close())
}
