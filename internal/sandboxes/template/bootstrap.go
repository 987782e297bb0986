package template

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// handedOut is where customize.sh leaves what is taken from the tree.
const handedOut = ".cofferdam-out"

// bootstrap makes the tree with the tool at hand and takes out what it left.
func (b *debianBuild) bootstrap(ctx context.Context) error {
	place := b.place
	if b.open != "" {
		place = b.open
	}
	script := filepath.Join(place, "customize.sh")
	if err := os.WriteFile(script, customizeScript, 0o755); err != nil { //nolint:gosec // run by mmdebstrap's own user
		return diskFault(err, b.store.dir)
	}
	if b.layout.wheels {
		if err := os.WriteFile(b.wheelsScript(script), wheelsScript, 0o755); err != nil { //nolint:gosec // as above
			return diskFault(err, b.store.dir)
		}
	}
	if filepath.Base(b.tool) == "debootstrap" {
		return b.debootstrap(ctx, script)
	}
	if err := b.setOutDebs(ctx); err != nil {
		return err
	}
	err := b.mmdebstrap(ctx, script, filepath.Join(place, "tmp"))
	if err != nil && strings.Contains(err.Error(), unlistedDeb) {
		b.dropDebs()
	}
	return err
}

// unlistedDeb is what customize.sh says of a package that is not the mirror's.
const unlistedDeb = "is not in the mirror's signed lists"

// imageHere reports whether the image can be written to where it stays. A
// namespace's root can't reach that.
func (b *debianBuild) imageHere() bool { return b.mkfs != "" && b.open == "" }

// outputs are the files that customize.sh makes for the builder.
func (b *debianBuild) outputs() []string {
	files := []string{"packages.tsv", "python.tsv"}
	if b.mkfs != "" && !b.imageHere() {
		files = append(files, "rootfs.erofs")
	}
	return files
}

func (b *debianBuild) mmdebstrap(ctx context.Context, script, tmp string) error {
	mode := "root"
	if b.open != "" {
		mode = "unshare"
	}
	if err := openDir(tmp); err != nil {
		return diskFault(err, b.store.dir)
	}
	c := toolCommand{
		path: b.tool, args: b.mmdebstrapArgs(ctx, mode, script), dir: tmp,
		env: append(b.scriptEnv(), "TMPDIR="+tmp),
	}
	return b.runTool(ctx, c)
}

func (b *debianBuild) mmdebstrapArgs(ctx context.Context, mode, script string) []string {
	args := []string{
		"--verbose", "--mode=" + mode, "--variant=essential",
		"--skip=cleanup,essential/unlink,output/dev,output/mknod,chroot/policy-rc.d,chroot/start-stop-daemon",
		"--include=" + strings.Join(b.layout.packages, ","),
		"--dpkgopt=force-unsafe-io", // the image is written to the disk at the end, and the tree thrown away
		`--setup-hook=mkdir -p "$1/var/cache/apt/archives"`,
		fmt.Sprintf("--setup-hook=sync-in '%s' /var/cache/apt/archives", b.debs),
	}
	for _, tree := range b.leftOut() {
		args = append(args, "--dpkgopt=path-exclude=/usr/share/"+tree)
	}
	for _, opt := range b.store.aptOptions(ctx) {
		args = append(args, "--aptopt="+opt)
	}
	if b.layout.manuals {
		args = append(args, `--essential-hook=echo "man-db man-db/auto-update boolean false" | chroot "$1" debconf-set-selections`)
	}
	args = append(args, fmt.Sprintf("--customize-hook=sync-out /var/cache/apt/archives '%s'", b.debs))
	for _, script := range b.scripts(script) {
		args = append(args, fmt.Sprintf(`--customize-hook=sh '%s' "$1"`, script))
	}
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
		args = append(args, s.sourceLine())
	}
	return args
}

// leftOut are the folders below usr/share that no package brings.
func (b *debianBuild) leftOut() []string {
	if b.layout.manuals { // those in other languages have a folder of the language's name
		return []string{"man/[!m]*/*", "man/m[!a]*/*", "doc/*", "info/*", "locale/*"}
	}
	return []string{"man/*", "doc/*", "info/*", "locale/*"}
}

// debootstrap is the fallback where mmdebstrap is missing: one suite, as root.
func (b *debianBuild) debootstrap(ctx context.Context, script string) error {
	source := b.distribution.sources[0]
	tree := filepath.Join(b.made, "root")
	b.report(Progress{Step: "install", Detail: "debootstrap takes only " + source.suite + ", without its security updates: mmdebstrap takes both"})
	args := []string{"--variant=minbase", "--components=" + strings.Join(source.components, ","), "--include=" + strings.Join(b.layout.packages, ",")}
	if source.signedBy != "" {
		args = append(args, "--keyring="+source.signedBy)
	}
	args = append(args, source.suite, tree, source.uri)
	if err := b.runTool(ctx, toolCommand{path: b.tool, args: args, dir: b.place, env: b.scriptEnv()}); err != nil {
		return err
	}
	for _, script := range b.scripts(script) {
		if err := b.runTool(ctx, toolCommand{path: "/bin/sh", args: []string{script, tree}, dir: b.place, env: b.scriptEnv()}); err != nil {
			return err
		}
	}
	for _, f := range b.outputs() {
		if err := os.Rename(filepath.Join(tree, handedOut, f), filepath.Join(b.made, f)); err != nil {
			return diskFault(err, b.store.dir)
		}
	}
	if b.mkfs == "" {
		return b.store.removeTree(ctx, filepath.Join(tree, handedOut))
	}
	return b.store.removeTree(ctx, tree)
}

// scriptEnv is the environment of the tools: the host's proxies, nothing else
// of it, and what customize.sh wants.
func (b *debianBuild) scriptEnv() []string {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/nonexistent",
		"DEBIAN_FRONTEND=noninteractive", "EPOCH=" + buildEpoch, "TOOLS=" + b.toolsFile,
	}
	env = append(env, "WHEELS="+b.wheelsFile, "PYTHON="+pythons()[b.distribution.codename])
	env = append(env, "PLAIN="+shellTruth(!b.layout.tools), "MANUALS="+shellTruth(b.layout.manuals), "ABSENT="+absentProfile(), "IMAGE=")
	if b.imageHere() {
		env[len(env)-1] += filepath.Join(b.made, "rootfs.erofs")
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

// shellTruth is a shell's truth.
func shellTruth(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// openUp makes the folder that a namespace's root can enter, which a state directory
// under a home does not allow.
func (b *debianBuild) openUp() error {
	if os.Geteuid() == 0 {
		return nil
	}
	open, err := os.MkdirTemp("", b.store.openPattern(b.layout.name))
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "no temporary folder for the build")
	}
	b.open = open
	if err := os.Chmod(open, 0o755); err != nil { //nolint:gosec // see above
		return diskFault(err, open)
	}
	return nil
}

// openPattern names the folders that a normal user's builds have outside the
// store; by it what a killed build left is found again.
func (s *Store) openPattern(name string) string {
	sum := sha256.Sum256([]byte(s.dir))
	return fmt.Sprintf("cofferdam-build-%d-%x-%s-*", os.Geteuid(), sum[:4], name)
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
