package template

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// handedOut is where customize.sh leaves what is taken from the tree.
const handedOut = ".cofferdam-out"

// install makes the tree with the tool at hand and takes out what it left.
func (b *debianBuild) install(ctx context.Context) error {
	script := filepath.Join(b.place, "customize.sh")
	if err := os.WriteFile(script, customizeScript, 0o755); err != nil { //nolint:gosec // run by mmdebstrap's own user
		return diskFault(err, b.store.dir)
	}
	if filepath.Base(b.tool) == "debootstrap" {
		return b.debootstrap(ctx, script)
	}
	return b.mmdebstrap(ctx, script)
}

// outputs are the files that customize.sh makes for the builder.
func (b *debianBuild) outputs() []string {
	files := []string{"packages.tsv", "python.tsv"}
	if b.mkfs != "" {
		files = append(files, "rootfs.erofs")
	}
	return files
}

func (b *debianBuild) mmdebstrap(ctx context.Context, script string) error {
	tmp := filepath.Join(b.place, "tmp")
	shared := script
	mode := "root"
	if os.Geteuid() != 0 {
		mode = "unshare"
		// The namespace's root must be able to enter the folder, which a
		// state directory under a home does not allow.
		open, err := os.MkdirTemp("", b.store.openPattern())
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "no temporary folder for the build")
		}
		defer func() { _ = removeTree(context.WithoutCancel(ctx), open) }()
		if shared, err = b.shareInputs(open, script); err != nil {
			return diskFault(err, open)
		}
		tmp = filepath.Join(open, "tmp")
	}
	if err := openDir(tmp); err != nil {
		return diskFault(err, b.store.dir)
	}
	c := command{
		path: b.tool, args: b.mmdebstrapArgs(ctx, mode, shared), dir: tmp,
		env: append(b.scriptEnv(), "TMPDIR="+tmp),
	}
	return b.runTool(ctx, c)
}

func (b *debianBuild) mmdebstrapArgs(ctx context.Context, mode, script string) []string {
	args := []string{
		"--verbose", "--mode=" + mode, "--variant=essential",
		"--skip=cleanup,output/dev,output/mknod,chroot/policy-rc.d,chroot/start-stop-daemon",
		"--include=" + strings.Join(b.packages(), ","),
	}
	for _, tree := range []string{"man", "doc", "info", "locale"} {
		args = append(args, "--dpkgopt=path-exclude=/usr/share/"+tree+"/*")
	}
	for _, opt := range aptOptions(ctx, b.store.opt.HostRoot) {
		args = append(args, "--aptopt="+opt)
	}
	args = append(args, fmt.Sprintf(`--customize-hook=sh '%s' "$1"`, script))
	for _, f := range b.outputs() {
		args = append(args, fmt.Sprintf("--customize-hook=download '/%s/%s' '%s'", handedOut, f, filepath.Join(b.made, f)))
	}
	target := "-"
	if b.mkfs == "" {
		args = append(args, `--customize-hook=rm -rf "$1/`+handedOut+`"`, "--format=directory")
		target = filepath.Join(b.made, "root")
	} else {
		args = append(args, "--format=null")
	}
	args = append(args, b.distribution.codename, target)
	for _, s := range b.distribution.sources {
		args = append(args, s.line())
	}
	return args
}

// debootstrap is the fallback where mmdebstrap is missing: one suite, as root.
func (b *debianBuild) debootstrap(ctx context.Context, script string) error {
	source := b.distribution.sources[0]
	tree := filepath.Join(b.made, "root")
	b.report(Progress{Step: "install", Detail: "debootstrap takes only " + source.suite + ", without its security updates: mmdebstrap takes both"})
	args := []string{"--variant=minbase", "--components=" + strings.Join(source.components, ","), "--include=" + strings.Join(b.packages(), ",")}
	if source.signedBy != "" {
		args = append(args, "--keyring="+source.signedBy)
	}
	args = append(args, source.suite, tree, source.uri)
	if err := b.runTool(ctx, command{path: b.tool, args: args, dir: b.place, env: b.scriptEnv()}); err != nil {
		return err
	}
	if err := b.runTool(ctx, command{path: "/bin/sh", args: []string{script, tree}, dir: b.place, env: b.scriptEnv()}); err != nil {
		return err
	}
	for _, f := range b.outputs() {
		if err := os.Rename(filepath.Join(tree, handedOut, f), filepath.Join(b.made, f)); err != nil {
			return diskFault(err, b.store.dir)
		}
	}
	if b.mkfs == "" {
		return removeTree(ctx, filepath.Join(tree, handedOut))
	}
	return removeTree(ctx, tree)
}

// scriptEnv is the environment of the tools: the host's proxies, nothing else
// of it, and what customize.sh wants.
func (b *debianBuild) scriptEnv() []string {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/nonexistent",
		"DEBIAN_FRONTEND=noninteractive", "EPOCH=" + buildEpoch, "TOOLS=" + b.toolsFile,
	}
	if b.isBase() {
		env = append(env, "BASE=yes")
	} else {
		env = append(env, "BASE=")
	}
	uuid := ""
	if b.mkfs != "" {
		uuid = imageUUID
	}
	env = append(env, "IMAGE_UUID="+uuid)
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// shareInputs copies what the namespace's root must read to a folder that it
// can enter, and returns the script's path there.
func (b *debianBuild) shareInputs(open, script string) (string, error) {
	if err := os.Chmod(open, 0o755); err != nil { //nolint:gosec // see mmdebstrap
		return "", err
	}
	shared := filepath.Join(open, "customize.sh")
	if err := copyFile(script, shared, 0o755); err != nil {
		return "", err
	}
	if b.toolsFile == "" {
		return shared, nil
	}
	tools := filepath.Join(open, "tools.tar")
	if err := copyFile(b.toolsFile, tools, 0o644); err != nil {
		return "", err
	}
	b.toolsFile = tools
	return shared, nil
}

// openPattern names the folders that a normal user's builds have outside the
// store; by it what a killed build left is found again.
func (s *Store) openPattern() string {
	sum := sha256.Sum256([]byte(s.dir))
	return fmt.Sprintf("cofferdam-build-%d-%x-*", os.Geteuid(), sum[:4])
}

// openDir makes a folder that everybody may enter and write, as TMPDIR of a
// namespace's root must be.
func openDir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // see above
		return err
	}
	if os.Geteuid() == 0 {
		return nil
	}
	return os.Chmod(dir, 0o1777) //nolint:gosec // see above
}
