// Package firecrackertest is a monitor that speaks Firecracker's API as far as it is known,
// and has no machines: what runs in one is whatever a test gives it.
//
// It refuses what is not in testdata/api.json, and calls in another order than the real one's. The
// sentences of four refusals, and what it says when a machine dies, are those that a real
// Firecracker 1.16.1 was seen to answer; the others are made up. It keeps of a machine that was
// saved a word by which the test knows it.
package firecrackertest

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
)

// Version is what it says that it is.
const Version = "Firecracker v1.16.2"

// The sentences that a real one was seen to say.
const (
	noKernel     = "Start microvm error: Cannot start microvm without kernel configuration."
	kernelGone   = "Boot source error: The kernel file cannot be opened: No such file or directory (os error 2)"
	badCPUs      = "Machine config error: The number of vCPUs must be greater than 0, less than 32 and must be 1 or an even number if SMT is enabled."
	loadTooLate  = "Load snapshot error: Loading a microVM snapshot not allowed after configuring boot-specific resources."
	DiesSaying   = "MicroVM stopped with an error: GenericError"
	afterStart   = "The requested operation is not supported after starting the microVM."
	beforeStart  = "The requested operation is not supported before starting the microVM."
	notPaused    = "Create snapshot error: the microVM must be paused."
	loadFailed   = "Load snapshot error: Failed to restore from snapshot: "
	createFailed = "Create snapshot error: "
)

// Guest is what runs in the machine.
type Guest interface {
	Start() error
	Pause() error
	Resume() error
	// Save keeps the guest, which stands still, and returns the word for it; Load makes
	// this guest, which has not started, of what has that word.
	Save() (word string, err error)
	Load(word string) error
	// Connect connects to a port on which the guest listens.
	Connect(port uint32) (net.Conn, error)
}

// Monitor is an http.Handler. The zero value with a Guest is one that was just started.
type Monitor struct {
	Guest Guest

	mu     sync.Mutex // guards the rest
	calls  Calls
	state  string // "" before the start
	bodies map[string]map[string]any
	drives []string // paths
	socket string   // of the machine's socket
	wires  []wire
	lost   bool // with the next Resume all connections go
}

// saved is the file of a machine's devices.
type saved struct {
	Version string   `json:"version"`
	Socket  string   `json:"socket"`
	Drives  []string `json:"drives"`
}

func (m *Monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, err := io.ReadAll(io.LimitReader(r.Body, 50<<10))
	if m.calls.Calls == nil && err == nil {
		m.calls, err = Description()
	}
	var call Call
	if err == nil {
		call, err = m.calls.Find(r.Method, r.URL.Path)
	}
	if err == nil && r.ContentLength < 0 {
		err = errors.New("a body of a length that is not told")
	}
	refused := ""
	if err == nil {
		var values map[string]any
		_ = json.Unmarshal(body, &values) // Check says what is wrong with it
		if r.URL.Path == "/machine-config" && (values["vcpu_count"] == 0.0 || values["vcpu_count"] == 33.0) {
			refused = badCPUs
		} else if err = call.Check(body); err == nil {
			refused = m.doCall(call, r.URL.Path, values)
		}
	}
	if err != nil {
		refused = "An error occurred when deserializing the json body of a request: " + err.Error()
	}
	w.Header().Set("Server", "Firecracker API")
	w.Header().Set("Content-Type", "application/json")
	switch {
	case refused != "":
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"fault_message": refused})
	case call.Answers == http.StatusOK:
		_ = json.NewEncoder(w).Encode(map[string]string{"app_name": "Firecracker", "id": "test", "state": m.saidSoFar(), "vmm_version": "1.16.2"})
	default:
		w.WriteHeader(call.Answers)
	}
}

func (m *Monitor) saidSoFar() string {
	if m.state == "" {
		return "Not started"
	}
	return m.state
}

// doCall does a call that is well formed, and returns why it does not.
func (m *Monitor) doCall(call Call, at string, body map[string]any) (refused string) {
	switch {
	case call.When == "before" && m.state != "":
		return afterStart
	case call.When == "after" && m.state == "":
		return beforeStart
	}
	if m.bodies == nil {
		m.bodies = map[string]map[string]any{}
	}
	switch {
	case at == "/actions":
		return m.startGuest(body["action_type"])
	case at == "/vm":
		return m.turnState(body["state"])
	case at == "/snapshot/create":
		return m.saveGuest(textOf(body["snapshot_path"]), textOf(body["mem_file_path"]))
	case at == "/snapshot/load":
		return m.loadGuest(body)
	case at == "/boot-source":
		for _, field := range []string{"kernel_image_path", "initrd_path"} {
			if _, err := os.Stat(textOf(body[field])); err != nil && body[field] != nil {
				return kernelGone
			}
		}
	case strings.HasPrefix(at, "/drives/"):
		if refused := usable(textOf(body["path_on_host"]), body["is_read_only"] == true); refused != "" {
			return refused
		}
		m.drives = append(m.drives, textOf(body["path_on_host"]))
	case at == "/vsock":
		m.socket = textOf(body["uds_path"])
	}
	if call.Method == http.MethodPut {
		m.bodies[at] = body
	}
	return ""
}

func textOf(v any) string {
	s, _ := v.(string)
	return s
}

// usable tells why a drive can't be opened; "" if it can.
func usable(path string, readOnly bool) string {
	flags := os.O_RDWR
	if readOnly {
		flags = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return "Drive config error: Unable to open: " + err.Error()
	}
	_ = f.Close()
	return ""
}

func (m *Monitor) startGuest(action any) (refused string) {
	switch {
	case action != "InstanceStart":
		return beforeStart
	case m.state != "":
		return afterStart
	case m.bodies["/boot-source"] == nil:
		return noKernel
	}
	if err := m.listen(); err != nil {
		return "Start microvm error: " + err.Error()
	}
	if err := m.Guest.Start(); err != nil {
		return "Start microvm error: " + err.Error()
	}
	m.state = "Running"
	return ""
}

func (m *Monitor) turnState(to any) (refused string) {
	var err error
	if to == "Paused" {
		if m.state != "Paused" {
			err = m.Guest.Pause()
		}
		m.state = "Paused"
	} else {
		if m.lost {
			m.resetConns()
		}
		err = m.Guest.Resume()
		m.state = "Running"
	}
	if err != nil {
		return "Changing the state failed: " + err.Error()
	}
	return ""
}

func (m *Monitor) saveGuest(state, memory string) (refused string) {
	if m.state != "Paused" {
		return notPaused
	}
	word, err := m.Guest.Save()
	if err != nil {
		return createFailed + err.Error()
	}
	devices, err := json.Marshal(saved{Version: Version, Socket: m.socket, Drives: m.drives})
	if err == nil {
		err = os.WriteFile(state, devices, 0o600)
	}
	if err == nil {
		err = os.WriteFile(memory, []byte(word), 0o600)
	}
	m.lost = true
	if err != nil {
		return createFailed + err.Error()
	}
	return ""
}

func (m *Monitor) loadGuest(body map[string]any) (refused string) {
	if len(m.bodies) > 0 {
		return loadTooLate
	}
	backend, _ := body["mem_backend"].(map[string]any)
	if textOf(backend["backend_type"]) != "File" {
		return loadFailed + "this one reads memory of files only"
	}
	devices, err := os.ReadFile(textOf(body["snapshot_path"]))
	if err != nil {
		return loadFailed + err.Error()
	}
	var s saved
	if err := json.Unmarshal(devices, &s); err != nil || s.Version != Version {
		return loadFailed + "the version of the snapshot is not supported"
	}
	word, err := os.ReadFile(textOf(backend["backend_path"]))
	if err != nil {
		return loadFailed + err.Error()
	}
	m.socket, m.drives = s.Socket, s.Drives
	for _, path := range s.Drives {
		if refused := usable(path, true); refused != "" {
			return loadFailed + refused
		}
	}
	if err := m.listen(); err != nil {
		return loadFailed + err.Error()
	}
	if err := m.Guest.Load(string(word)); err != nil {
		return loadFailed + err.Error()
	}
	m.state = "Paused"
	if body["resume_vm"] == true {
		return m.turnState("Resumed")
	}
	return ""
}
