package template

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// uvWheel is the pinned wheel of uv for one architecture.
type uvWheel struct {
	file     string
	platform string // pip's tag
	sha256   string // hex
}

// requirement is pip's, with the digest that it must find.
func (w uvWheel) requirement() string {
	return fmt.Sprintf("uv==%s --hash=sha256:%s", uvVersion, w.sha256)
}

const uvVersion = "0.13.8"

// pinnedUV returns this architecture's wheel; ok is false where none is pinned.
func pinnedUV(arch string) (wheel uvWheel, ok bool) {
	switch arch {
	case "amd64":
		return uvWheel{
			"uv-0.13.8-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "manylinux_2_17_x86_64",
			"e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",
		}, true
	case "arm64":
		return uvWheel{
			"uv-0.13.8-py3-none-manylinux_2_28_aarch64.whl", "manylinux_2_28_aarch64",
			"5337c30bb893b4f9ce0ceb921ba2da0d13f649da644f40ad3bef84083bef0203",
		}, true
	}
	return uvWheel{}, false
}

// maxUVBytes bounds one program unpacked from the wheel.
const maxUVBytes = 256 << 20

// fetchUV returns a folder with uv and uvx, or "" if this host can't have them.
// The host's pip fetches the wheel, from wherever it is set up to; its digest
// is pinned here, so the source need not be trusted. The wheel is kept.
func (b *debianBuild) fetchUV(ctx context.Context) (string, error) {
	wheel, ok := b.store.uv(runtime.GOARCH)
	if !ok {
		b.report(Progress{Step: "uv", Detail: "left out: none is pinned for " + runtime.GOARCH})
		return "", nil
	}
	kept := filepath.Join(b.store.dir, ".uv", wheel.file)
	if digest, _, err := digestFile(ctx, kept); err != nil || digest != "sha256:"+wheel.sha256 {
		pip := hostPip(ctx)
		if pip == nil {
			b.report(Progress{Step: "uv", Detail: "this host has no pip: the template's will fetch " + uvVersion, Percent: 2})
			b.uvPin = true
			return "", nil
		}
		b.report(Progress{Step: "uv", Detail: "fetching " + uvVersion, Percent: 2})
		if err := b.downloadUV(ctx, pip, wheel, kept); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(b.place, "uv")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // programs for everybody
		return "", diskFault(err, b.store.dir)
	}
	return dir, unpackUV(kept, dir)
}

// downloadUV runs pip, which executes nothing of what it downloads: a wheel
// only, and with its digest demanded.
func (b *debianBuild) downloadUV(ctx context.Context, pip []string, wheel uvWheel, kept string) error {
	requirements := filepath.Join(b.place, "uv.txt")
	if err := os.WriteFile(requirements, []byte(wheel.requirement()+"\n"), 0o600); err != nil {
		return diskFault(err, b.store.dir)
	}
	download := filepath.Join(b.place, "download")
	args := append(pip[1:], "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes",
		"--only-binary=:all:", "--implementation=py", "--python-version=3.11", "--platform="+wheel.platform,
		"--dest", download, "--requirement", requirements)
	cmd := exec.CommandContext(ctx, pip[0], args...)
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "uv %s cannot be fetched with this host's pip (%s): check pip's index and the network", uvVersion, lastLine(out))
	}
	got := filepath.Join(download, wheel.file)
	if digest, _, err := digestFile(ctx, got); err != nil || digest != "sha256:"+wheel.sha256 {
		return fault.New(fault.ErrUnavailable, "pip fetched another file for uv %s than the pinned %s", uvVersion, wheel.file)
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return diskFault(err, b.store.dir)
	}
	return os.Rename(got, kept)
}

// hostPip returns the command of the host's pip, or nil.
func hostPip(ctx context.Context) []string {
	for _, argv := range [][]string{{"python3", "-m", "pip"}, {"/usr/bin/python3", "-m", "pip"}, {"pip3"}, {"pip"}} {
		path, err := exec.LookPath(argv[0])
		if err != nil {
			continue
		}
		argv[0] = path
		// Never from the working directory: who can write there would be run.
		probe := exec.CommandContext(ctx, argv[0], append(argv[1:], "--version")...)
		probe.Dir = "/"
		if probe.Run() == nil {
			return argv
		}
	}
	return nil
}

// unpackUV takes the two programs out of a wheel whose digest was checked.
func unpackUV(wheel, dir string) error {
	r, err := zip.OpenReader(wheel)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "uv's wheel cannot be read")
	}
	defer func() { _ = r.Close() }()
	found := 0
	for _, f := range r.File {
		name, ok := strings.CutPrefix(f.Name, "uv-"+uvVersion+".data/scripts/")
		if !ok || (name != "uv" && name != "uvx") {
			continue
		}
		if err := unpackFile(f, filepath.Join(dir, name)); err != nil {
			return diskFault(err, dir)
		}
		found++
	}
	if found != 2 {
		return fault.New(fault.ErrUnavailable, "uv's wheel has %d of the 2 programs that were expected", found)
	}
	return nil
}

func unpackFile(f *zip.File, path string) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // a program
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, io.LimitReader(in, maxUVBytes)); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

// lastLine is the end of a tool's output, short enough for a sentence.
func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	if len(text) > 300 {
		text = text[:300] + "..."
	}
	return text
}
