package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// holds answers with the file holds.json of the state directory, and again
// whenever its content is another; without the file nothing is waited for.
func (d *stubDaemon) holds(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var last []byte
	for d.lives(r.PathValue("id")) {
		text, err := os.ReadFile(filepath.Join(d.paths.State, "holds.json"))
		if err != nil {
			text = []byte("[]\n")
		}
		if !bytes.Equal(text, last) {
			last = text
			_, _ = w.Write(text)
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

func (d *stubDaemon) lives(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.boxes[id] != nil
}

// approval answers with the file approval.json, if there is one; else the queue
// does.
func (d *stubDaemon) approval(queue http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(filepath.Join(d.paths.State, "approval.json")); err != nil {
			queue.ServeHTTP(w, r)
			return
		}
		d.file("approval.json")(w, r)
	}
}
