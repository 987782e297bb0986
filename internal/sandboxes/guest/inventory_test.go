package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

func (a *agentHere) installedHere() map[string]channel.InstalledPackage {
	a.t.Helper()
	found, _ := a.inventory()
	return found
}

func (a *agentHere) inventory() (map[string]channel.InstalledPackage, bool) {
	a.t.Helper()
	found := map[string]channel.InstalledPackage{}
	packages, _, truncated := a.pages(channel.InventoryAsk{})
	for _, p := range packages {
		if !p.Source {
			found[p.Path] = p
		}
	}
	return found, truncated
}

// pages fetches an inventory whole.
func (a *agentHere) pages(ask channel.InventoryAsk) (packages []channel.InstalledPackage, pages int, truncated bool) {
	a.t.Helper()
	for {
		reply := a.mustCall(channel.Call{Kind: channel.CallInventory, Inventory: &ask})
		var page channel.Inventory
		if err := json.Unmarshal(reply.Body, &page); err != nil {
			a.t.Fatal(err)
		}
		packages, pages = append(packages, page.Packages...), pages+1
		if page.Next == 0 {
			return packages, pages, page.Truncated
		}
		if page.Next != len(packages) {
			a.t.Fatalf("the next page is said to begin at %d, after %d packages", page.Next, len(packages))
		}
		ask.Take, ask.From = page.Take, page.Next
	}
}

func (a *agentHere) write(path, content string) {
	a.t.Helper()
	path = a.root + path
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		a.t.Fatal(err)
	}
}

func TestInventory(t *testing.T) {
	a := startBare(t, nil)
	configure := testConfigure(t)
	configure.Workspace = "/data/job"
	a.mustCall(channel.Call{Kind: channel.CallConfigure, Configure: configure})
	a.write("/data/job/lib/w-6.dist-info/METADATA", "Name: w\nVersion: 6\n")
	a.write("/opt/1/2/3/4/5/6/7/8/9/10/11/12/d-7.dist-info/METADATA", "Name: d\nVersion: 7\n")
	metadata := "Metadata-Version: 2.1\r\nName: Real_Name\r\nVersion: 1.2.3\r\n\r\nName: forged\nVersion: 9\n"
	for _, dir := range []string{
		"/usr/lib/python3/dist-packages", "/usr/lib/python3.11/site-packages", "/usr/local/lib/python3.13/site-packages",
		"/home/agent/.local/lib/python3.11/site-packages", "/workspace/deep/er/venv/lib/python3.12/site-packages",
		"/opt/tool/lib/python3.12/site-packages", "/tmp/target", "/root/.venv/lib/python3.12/site-packages",
	} {
		a.write(dir+"/pkg-1.2.3.dist-info/METADATA", metadata)
	}
	a.write("/opt/bare-2.0.dist-info/RECORD", "")
	a.write("/opt/proc/proc-1.dist-info/METADATA", "Name: proc\nVersion: 1\n")
	for _, dir := range []string{"/opt/node_modules/x/lib", "/opt/_cacache", "/opt/.git", "/tmp/target/pkg/_vendor", "/etc", "/usr/lib/python3/dist-packages/inner"} {
		a.write(dir+"/hidden-1.dist-info/METADATA", "Name: hidden\nVersion: 1\n")
	}
	a.write("/opt/fifo-3.dist-info/RECORD", "")
	if err := unix.Mkfifo(a.root+"/opt/fifo-3.dist-info/METADATA", 0o644); err != nil {
		t.Fatal(err)
	}
	a.write("/opt/link-4.dist-info/RECORD", "")
	if err := os.Symlink("/dev/zero", a.root+"/opt/link-4.dist-info/METADATA"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", a.root+"/opt/loop"); err != nil {
		t.Fatal(err)
	}
	a.write("/opt/huge-5.dist-info/METADATA", "Name: huge\nVersion: 5\nX: "+strings.Repeat("x", 1<<20))
	got := a.installedHere()
	want := map[string]string{
		"/usr/lib/python3/dist-packages/pkg-1.2.3.dist-info":                       "Real_Name 1.2.3",
		"/usr/lib/python3.11/site-packages/pkg-1.2.3.dist-info":                    "Real_Name 1.2.3",
		"/usr/local/lib/python3.13/site-packages/pkg-1.2.3.dist-info":              "Real_Name 1.2.3",
		"/home/agent/.local/lib/python3.11/site-packages/pkg-1.2.3.dist-info":      "Real_Name 1.2.3",
		"/workspace/deep/er/venv/lib/python3.12/site-packages/pkg-1.2.3.dist-info": "Real_Name 1.2.3",
		"/opt/tool/lib/python3.12/site-packages/pkg-1.2.3.dist-info":               "Real_Name 1.2.3",
		"/tmp/target/pkg-1.2.3.dist-info":                                          "Real_Name 1.2.3",
		"/root/.venv/lib/python3.12/site-packages/pkg-1.2.3.dist-info":             "Real_Name 1.2.3",
		"/data/job/lib/w-6.dist-info":                                              "w 6",
		"/opt/1/2/3/4/5/6/7/8/9/10/11/12/d-7.dist-info":                            "d 7",
		"/opt/bare-2.0.dist-info":                                                  "bare 2.0",
		"/opt/proc/proc-1.dist-info":                                               "proc 1",
		"/opt/fifo-3.dist-info":                                                    "fifo 3",
		"/opt/link-4.dist-info":                                                    "link 4",
		"/opt/huge-5.dist-info":                                                    "huge 5",
	}
	for path, what := range want {
		if p := got[path]; p.Name+" "+p.Version != what || p.Ecosystem != "python" {
			t.Errorf("%s: %+v, want %s", path, p, what)
		}
		delete(got, path)
	}
	delete(got, "/opt/node_modules/x")
	for path := range got {
		t.Errorf("%s was not to be found", path)
	}
}

func TestNodeInventory(t *testing.T) {
	a := startAgent(t, nil)
	manifest := func(dir, name, version string) {
		t.Helper()
		a.write(dir+"/package.json", fmt.Sprintf(`{"version": %q, "scripts": {"name": "no"}, "name": %q}`, version, name))
	}
	const top = "/workspace/app/node_modules"
	manifest(top+"/left-pad", "left-pad", "1.3.0")
	manifest(top+"/@acme/tool", "@acme/tool", "2.0.0")
	manifest(top+"/outer/node_modules/left-pad", "left-pad", "1.0.0")
	manifest(top+"/other/node_modules/left-pad", "left-pad", "1.3.0") // the same release again
	manifest(top+"/alias", "real-name", "3.0.0")
	manifest(top+"/.pnpm/left-pad@9.0.0/node_modules/left-pad", "left-pad", "9.0.0")
	manifest(top+"/.pnpm/@acme+tool@5.0.0/node_modules/@acme/tool", "@acme/tool", "5.0.0")
	manifest(top+"/.cache/hidden", "hidden", "1.0.0")
	manifest(top+"/left-pad/lib/inner", "inner", "1.0.0") // the package's own files
	a.write(top+"/broken/package.json", "{")
	a.write(top+"/cut/package.json", `{"name": "cut", "version": "4.0.0", "readme": "`+strings.Repeat("x", 64<<10))
	a.write(top+"/odd/package.json", `{"name": ["x"], "version": 1}`)
	a.write(top+"/unnamed/index.js", "")
	a.write(top+"/around/node_modules/bare/lib/index.js", "")
	for _, hollow := range []string{"/refused", "/@acme/refused", "/refusedtree/node_modules/another"} {
		if err := os.MkdirAll(a.root+top+hollow, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".pnpm/left-pad@9.0.0/node_modules/left-pad", a.root+top+"/link"); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for path, p := range a.installedHere() {
		if p.Ecosystem != "node" || !strings.HasPrefix(path, top) {
			t.Errorf("%+v", p)
		}
		got[p.Name+" "+p.Version] = true
	}
	for _, want := range []string{
		"left-pad 1.3.0", "@acme/tool 2.0.0", "left-pad 1.0.0", "real-name 3.0.0", "left-pad 9.0.0", "@acme/tool 5.0.0",
		"outer ", "other ", "broken ", "cut 4.0.0", "odd ", "unnamed ", "around ", "bare ",
	} {
		if !got[want] {
			t.Errorf("%q is missing in %v", want, got)
		}
		delete(got, want)
	}
	if len(got) > 0 {
		t.Errorf("also found: %v", got)
	}
}

func TestGoInventory(t *testing.T) {
	a := startAgent(t, nil)
	for _, file := range []string{
		"/home/agent/go/pkg/mod/cache/download/example.com/!big/!name/v2/@v/v2.1.0.ziphash",
		"/home/agent/go/pkg/mod/cache/download/example.com/!big/!name/v2/@v/v2.1.0.zip",
		"/home/agent/go/pkg/mod/cache/download/example.com/only/meta/@v/v1.0.0.mod",
		"/home/agent/go/pkg/mod/cache/download/sumdb/x/tile/1",
		"/home/agent/go/pkg/mod/example.com/!big/!name/v2@v2.1.0/inner/node.go",
		"/home/agent/go/pkg/mod/example.com/unpacked@v0.0.0-20200101000000-abcdefabcdef/x.go",
		"/workspace/cache/download/example.com/elsewhere/@v/v1.2.3-!r!c1.ziphash",
		"/workspace/not/a/cache/@v/v9.0.0.zip",
	} {
		a.write(file, "x")
	}
	got := map[string]bool{}
	for _, p := range a.installedHere() {
		got[p.Ecosystem+" "+p.Name+" "+p.Version] = true
	}
	for _, want := range []string{
		"go example.com/Big/Name/v2 v2.1.0", "go example.com/unpacked v0.0.0-20200101000000-abcdefabcdef", "go example.com/elsewhere v1.2.3-RC1",
	} {
		if !got[want] {
			t.Errorf("%q is missing in %v", want, got)
		}
		delete(got, want)
	}
	if len(got) > 0 {
		t.Errorf("also found: %v", got)
	}
}

// An inventory that is more than a reply comes in pages; one with more than is
// taken says so, and is still an answer.
func TestInventoryComesInPages(t *testing.T) {
	a := startAgent(t, nil)
	for i := range 2000 {
		a.write(fmt.Sprintf("/opt/p%d-1.dist-info/METADATA", i), "Name: "+strings.Repeat("n", 200)+"\nVersion: 1\n")
	}
	found, pages, truncated := a.pages(channel.InventoryAsk{})
	if truncated || len(found) != 2000 || pages < 2 {
		t.Errorf("%d packages on %d pages, truncated %v", len(found), pages, truncated)
	}
	a.write("/opt/x-1.dist-info/METADATA", "Name: "+strings.Repeat("x", 300)+"\n")
	if _, _, truncated = a.pages(channel.InventoryAsk{}); !truncated {
		t.Error("a name was cut without a word")
	}
	for _, ask := range []channel.InventoryAsk{{Take: 1, From: 0}, {Take: 2, From: 2002}, {Take: 2, From: -1}, {Take: 99}} {
		if _, reply := a.call(channel.Call{Kind: channel.CallInventory, Inventory: &ask}); reply.OK {
			t.Errorf("%+v has a page", ask)
		}
	}
}

func TestInventoryOfSomePlaces(t *testing.T) {
	a := startAgent(t, nil)
	for _, dir := range []string{"/workspace", "/workspace/ro", "/workspace/ro/rw", "/workspace/ro/rw/ro", "/opt"} {
		a.write(dir+"/pkg-1.dist-info/METADATA", "Name: pkg\nVersion: 1\n")
	}
	for _, c := range []struct {
		ask  channel.InventoryAsk
		want []string
	}{
		{channel.InventoryAsk{Skip: []string{"/workspace/ro"}}, []string{"/opt", "/workspace"}},
		{channel.InventoryAsk{Places: []string{"/workspace"}, Skip: []string{"/workspace/ro"}}, []string{"/workspace"}},
		{channel.InventoryAsk{Places: []string{"/workspace", "/workspace/ro/rw"}, Skip: []string{"/workspace/ro", "/workspace/ro/rw/ro"}}, []string{"/workspace", "/workspace/ro/rw"}},
		{channel.InventoryAsk{Skip: []string{"/workspace/"}}, []string{"/opt"}},
		{channel.InventoryAsk{Places: []string{"/workspace"}, Depth: 1}, []string{"/workspace", "/workspace/ro"}},
	} {
		packages, _, _ := a.pages(c.ask)
		var got []string
		for _, p := range packages {
			got = append(got, filepath.Dir(p.Path))
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.ask, got, c.want)
		}
	}
}

// TestLocalPackages: what somebody writes in the sandbox is told, and what was
// installed from there.
func TestLocalPackages(t *testing.T) {
	a := startAgent(t, nil)
	a.write("/workspace/pyproject.toml", "[build-system]\nrequires = []\n[project]\nname = \"My.App\" # ours\n[tool.x]\nname = \"no\"\n")
	a.write("/workspace/old/setup.py", "setup(\n  name='old_app',\n)")
	a.write("/workspace/odd/setup.py", "NAME = 'odd'\nsetup(name=NAME)")
	a.write("/workspace/cfg/setup.cfg", "[metadata]\nname = cfg-app\n")
	a.write("/workspace/ui/package.json", `{"name": "@me/ui", "version": "0.0.1"}`)
	a.write("/workspace/none/package.json", `{"private": true}`)
	const site = "/workspace/.venv/lib/python3.12/site-packages"
	a.write(site+"/my_app-1.dist-info/METADATA", "Name: My.App\nVersion: 1\n")
	a.write(site+"/my_app-1.dist-info/direct_url.json", `{"url": "file:///workspace/", "dir_info": {"editable": true}}`)
	a.write(site+"/wheel-1.dist-info/METADATA", "Name: wheel\nVersion: 1\n")
	a.write(site+"/wheel-1.dist-info/direct_url.json", `{"url": "file:///tmp/wheel.whl", "archive_info": {}}`)
	a.write(site+"/far-1.dist-info/METADATA", "Name: far\nVersion: 1\n")
	a.write(site+"/far-1.dist-info/direct_url.json", `{"url": "https://far.example/far.whl", "archive_info": {}}`)
	a.write(site+"/vcs-1.dist-info/METADATA", "Name: vcs\nVersion: 1\n")
	a.write(site+"/vcs-1.dist-info/direct_url.json", `{"url": "file:///workspace/vcs", "vcs_info": {"vcs": "git"}}`)
	a.write(site+"/legacy-2.egg-info/PKG-INFO", "Name: legacy\nVersion: 2\n")
	a.write(site+"/single-3-py3.12.egg-info", "Name: single\nVersion: 3\n")
	a.write("/workspace/src/my_app.egg-info/PKG-INFO", "Name: My.App\nVersion: 1\n")
	packages, _, _ := a.pages(channel.InventoryAsk{})
	var got []string
	for _, p := range packages {
		got = append(got, strings.TrimSpace(fmt.Sprint(p.Source, " ", p.Name, " ", p.Version, " ", p.From)))
	}
	slices.Sort(got)
	want := []string{
		"false My.App 1 /workspace", "false far 1", "false legacy 2", "false single 3", "false vcs 1", "false wheel 1 /tmp/wheel.whl",
		"true", "true @me/ui 0.0.1", "true My.App", "true cfg-app", "true old_app",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
