package project

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWhereAllowedPolicyMountsLead: what a person allows covers where the mounts of the policy lead, as it covers
// those of the settings.
func TestWhereAllowedPolicyMountsLead(t *testing.T) {
	for name, documents := range map[string]func(source string) (settings, policy string){
		"control: the settings' own mount": func(string) (string, string) {
			return "policy: policy.yaml\nmounts: [\"data:/data\"]\n", "name: p\npackages: {default: deny}\n"
		},
		"filesystem.host_mounts": func(source string) (string, string) {
			return "policy: policy.yaml\n", "name: p\npackages: {default: deny}\nfilesystem:\n  host_mounts: [{source: " + source + ", destination: /data}]\n"
		},
		"sandbox_mounts": func(source string) (string, string) {
			return "policy: policy.yaml\n", "name: p\npackages: {default: deny}\nsandbox_mounts: {input_dir: " + source + "}\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			top, err := filepath.EvalSymlinks(t.TempDir())
			check(t, err)
			dir, secret, file := filepath.Join(top, "project"), filepath.Join(top, "secret"), filepath.Join(top, "projects.json")
			data := filepath.Join(dir, "data")
			check(t, os.MkdirAll(data, 0o755))
			check(t, os.Mkdir(secret, 0o700))
			settings, policy := documents(data)
			check(t, os.WriteFile(filepath.Join(dir, File), []byte(settings), 0o600))
			check(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600))
			p, err := Read(dir)
			check(t, err)
			check(t, Allow(t.Context(), file, p))
			again, err := Read(dir)
			check(t, err)
			if ok, err := Allowed(file, again); !ok || err != nil { // the control
				t.Fatalf("unchanged, it is not allowed: %v", err)
			}
			check(t, os.Remove(data))
			check(t, os.Symlink(secret, data)) // as a stranger's next commit can
			again, err = Read(dir)
			check(t, err)
			if ok, err := Allowed(file, again); ok || err != nil {
				t.Errorf("it is allowed (%v), and nobody is shown that %s leads to %s now: %v", err, data, secret, again.Leads)
			}
		})
	}
}
