package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/landlock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/seccomp"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/network/dialer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func templates(ctx context.Context, in Inputs) []Check {
	if in.Templates == nil {
		return nil
	}
	var all []Check
	for _, known := range in.Templates.Known() {
		name := "template " + known.Name
		t, err := in.Templates.Get(ctx, known.Name)
		switch {
		case err == nil:
			all = append(all, okCheck(name, "ready, %s of its own, %.19s", ui.Size(t.Bytes), t.Digest))
		case errors.Is(err, fault.ErrConflict) && in.DefaultTemplate != known.Name:
			all = append(all, okCheck(name, "not built; cofferdam template build %s makes it", known.Name))
		case errors.Is(err, fault.ErrConflict):
			all = append(all, warnCheck(name, "cofferdam template build "+known.Name, "not built yet, though it is the default"))
		default:
			all = append(all, failCheck(name, "", "%s", errorSentence(err)))
		}
	}
	return all
}

// builders are the programs that the debian template is built with.
func builders(_ context.Context, in Inputs) []Check {
	const name = "template tools"
	if in.Templates == nil {
		return nil
	}
	var missing []string
	for _, tool := range []string{"mmdebstrap", "mkfs.erofs"} {
		if executable.System(tool, in.Writable) == "" {
			missing = append(missing, tool)
		}
	}
	if len(missing) == 0 {
		return []Check{okCheck(name, "mmdebstrap and mkfs.erofs are there")}
	}
	return []Check{warnCheck(name, "apt-get install -y mmdebstrap erofs-utils", "%s is missing; building the debian template needs it; the template host does not, but starts sooner with mkfs.erofs", strings.Join(missing, " and "))}
}

// hostTools says what of the user's own tools the template host does not show.
func hostTools(ctx context.Context, in Inputs) []Check {
	const name = "tools of the host"
	if in.Templates == nil {
		return nil
	}
	var all []Check
	home := lookup(in.Env, "HOME")
	var hidden []string
	for _, dir := range filepath.SplitList(lookup(in.Env, "PATH")) {
		if home != "" && home != "/" && strings.HasPrefix(dir, home+"/") && !slices.Contains(hidden, "~"+dir[len(home):]) {
			hidden = append(hidden, "~"+dir[len(home):])
		}
	}
	if len(hidden) > 0 {
		all = append(all, okCheck(name, "the template host shows nothing of a home, so not what is in %s", strings.Join(hidden, ", ")))
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	probe := exec.CommandContext(ctx, "/usr/bin/python3", "-I", "-c", "import pip")
	probe.Dir = "/"
	if err := probe.Run(); err != nil && in.Root == "/" {
		check := warnCheck(name, "apt-get install -y python3-pip, or use the template debian", "/usr/bin/python3 has no pip, so neither has the template host")
		if in.DefaultTemplate != template.NameHost {
			check.Status = OK
		}
		all = append(all, check)
	}
	return all
}

func upstreams(ctx context.Context, in Inputs) []Check {
	const name = "registry"
	if in.Upstreams == nil {
		return nil
	}
	found, err := in.Upstreams(ctx)
	if err != nil {
		return []Check{failCheck(name, "mend the configuration file", "%s", errorSentence(err))}
	}
	var all []Check
	for _, u := range found.Upstreams {
		all = append(all, okCheck(name, "%s", describeUpstream(u)))
	}
	for _, m := range found.Missing {
		all = append(all, warnCheck(name, "name one under upstreams in the configuration file", "%s: none was found, so none of its packages can be installed: %s", m.Ecosystem, errorSentence(m.Why)))
	}
	return all
}

// describeUpstream shows an upstream without its credentials.
func describeUpstream(u upstream.Config) string {
	var with []string
	if u.Username != "" || u.Password != "" || u.Token != "" {
		with = append(with, "with credentials")
	}
	if len(u.CAPEM) > 0 {
		with = append(with, "with roots of its own")
	}
	shown := discover.Redacted(u)
	if shown.Proxy != "" {
		with = append(with, "through "+shown.Proxy)
	}
	text := fmt.Sprintf("%s: %s", shown.Ecosystem, shown.Index)
	if shown.Source != "" {
		text += ", from " + shown.Source
	}
	if u.Log != "" {
		name, _, _ := strings.Cut(u.Log, "+")
		with = append(with, "with the checksum database "+name)
	}
	if len(with) > 0 {
		text += ", " + strings.Join(with, ", ")
	}
	return text
}

func gatewayUser(_ context.Context, in Inputs) []Check {
	const name = "gateway user"
	if in.UID != 0 {
		return []Check{warnCheck(name, "run the daemon as root", "the gateway runs as this user, whose the log and the CA's key are")}
	}
	if in.GatewayUID <= 0 {
		return []Check{failCheck(name, "set gateway_uid in the configuration file to a user that owns nothing", "the gateway has no user of its own")}
	}
	if u, err := user.LookupId(strconv.Itoa(in.GatewayUID)); err == nil {
		return []Check{warnCheck(name, "set gateway_uid to a number that is nobody's, or see to it that "+u.Username+" owns nothing else", "user %d is %s", in.GatewayUID, u.Username)}
	}
	return []Check{okCheck(name, "user %d, which no other program uses", in.GatewayUID)}
}

// gatewayNetwork starts a process as the daemon starts the gateway.
func gatewayNetwork(ctx context.Context, in Inputs) []Check {
	const name = "gateway network"
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "--version")
	cmd.SysProcAttr = dialer.Apart(in.UID, os.Getegid())
	err := cmd.Start()
	switch {
	case dialer.Forbidden(err):
		return []Check{warnCheck(name, "allow network namespaces (for normal users: user namespaces, too; in a container: CAP_SYS_ADMIN)",
			"the gateway shares this host's network, for nobody may make a network namespace here: %v", err)}
	case err != nil:
		return []Check{failCheck(name, "give this user more processes or memory", "no process starts in a network namespace of its own: %v", err)}
	}
	_ = cmd.Wait() // it started, which is all there is to know
	return []Check{systemCalls(name, seccomp.Available())}
}

// systemCalls says what a gateway in an empty namespace can still do.
func systemCalls(name string, filters error) Check {
	switch {
	case errors.Is(filters, seccomp.ErrMissing):
		return warnCheck(name, "use a kernel with CONFIG_SECCOMP_FILTER", "an empty namespace, but the gateway can make sockets: this kernel has no filters for system calls")
	case filters != nil:
		return failCheck(name, "let the daemon use seccomp(2)", "no gateway starts: %v", filters)
	}
	return okCheck(name, "an empty namespace, and no way to make sockets; a dialer beside the gateway makes its connections")
}

// gatewayFiles says what keeps the gateway from files that its user may read.
func gatewayFiles(_ context.Context, in Inputs) []Check {
	return []Check{filesOf("gateway files", in.UID, landlock.Available())}
}

func filesOf(name string, uid int, fenced error) Check {
	const fix = "use a kernel from 5.19 on with CONFIG_SECURITY_LANDLOCK, and landlock in its list of lsm=; in a container, let it through"
	switch {
	case errors.Is(fenced, landlock.ErrMissing) && uid == 0:
		return warnCheck(name, fix, "the gateway's root directory is its cache, but nothing more keeps it there: this kernel has no Landlock that is enough")
	case errors.Is(fenced, landlock.ErrMissing):
		return warnCheck(name, fix, "the gateway can read and write what this user can, the log and the CA's key among it: this kernel has no Landlock that is enough")
	case fenced != nil:
		return failCheck(name, "let the daemon use Landlock", "no gateway starts: %v", fenced)
	}
	return okCheck(name, "it reads and writes its folder of the cache, its dialer reads the resolver's configuration, and neither any other file")
}

// lookup finds a variable in an environment; the last one counts.
func lookup(env []string, name string) string {
	found := ""
	for _, pair := range env {
		if v, has := strings.CutPrefix(pair, name+"="); has {
			found = v
		}
	}
	return found
}
