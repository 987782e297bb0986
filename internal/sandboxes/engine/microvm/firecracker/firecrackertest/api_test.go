package firecrackertest

import (
	"strings"
	"testing"
)

// TestBodies: what the description does not have is refused, so that the driver's calls are
// held to it.
func TestBodies(t *testing.T) {
	calls, err := Description()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, body, want string }{
		{"PUT", "/machine-config", `{"vcpu_count":2,"mem_size_mib":128}`, ""},
		{"PUT", "/machine-config", `{"vcpu_count":2}`, "mem_size_mib is missing"},
		{"PUT", "/machine-config", `{"vcpu_count":1.5,"mem_size_mib":128}`, "none of its values"},
		{"PUT", "/machine-config", `{"vcpu_count":2,"mem_size_mib":128,"ht_enabled":true}`, "no field ht_enabled"},
		{"PUT", "/drives/r", `{"drive_id":"r","is_root_device":"no"}`, "none of its values"},
		{"PUT", "/drives", `{}`, "no call"},
		{"POST", "/vsock", `{}`, "no call"},
		{"PUT", "/vsock", `{"guest_cid":2,"uds_path":"v"}`, "none of its values"},
		{"PATCH", "/vm", `{"state":"Stopped"}`, "none of its values"},
		{"PUT", "/snapshot/load", `{"snapshot_path":"s","mem_backend":{"backend_type":"File"}}`, "backend_path is missing"},
		{"PUT", "/snapshot/load", `{"snapshot_path":"s","mem_backend":{"backend_type":"File","backend_path":"m"},"clock_realtime":true}`, ""},
		{"PUT", "/entropy", `[]`, "no object"},
		{"GET", "/", `{}`, "takes no body"},
	} {
		call, err := calls.Find(c.method, c.path)
		if err == nil {
			err = call.Check([]byte(c.body))
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s %s: %v, want %q", c.method, c.path, c.body, err, c.want)
		}
	}
}
