package pypi

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// checkLanding refuses a wheel of which two files would land in one place, or
// whose data installers would put in different places. Its root, purelib and
// platlib become one folder.
func (w *openedWheel) checkLanding() error {
	data := strings.TrimSuffix(w.info, infoSuffix) + dataSuffix
	taken := map[string]bool{}
	for _, m := range w.members {
		if m.Mode.IsDir() {
			continue
		}
		place, err := landing(m.Path, data)
		if err != nil {
			return err
		}
		if place != m.Path && strings.HasPrefix(place, w.info+"/") {
			return fault.Invalid("the wheel's data change its own description")
		}
		if taken[place] {
			return fault.Invalid("two files of the wheel land in one place")
		}
		taken[place] = true
	}
	return nil
}

// dataSuffix ends the name of the folder that is spread over an installation.
const dataSuffix = ".data"

// landing is where a file lands: below site-packages, or below the folder of its
// scheme with that before it. data is the wheel's own data folder.
func landing(path, data string) (string, error) {
	top, rest, below := strings.Cut(path, "/")
	if !below || !strings.HasSuffix(top, dataSuffix) {
		return path, nil
	}
	if top != data {
		return "", fault.Invalid("the wheel has a data folder of another name than its own, which only some installers spread")
	}
	scheme, rest, below := strings.Cut(rest, "/")
	if !below {
		return "", fault.Invalid("the wheel's data folder has a file that belongs nowhere")
	}
	switch scheme {
	case "purelib", "platlib":
		return rest, nil
	case "scripts":
		return "//bin/" + rest, nil
	case "headers":
		return "//include/" + rest, nil
	case "data":
		if _, inner, ok := strings.Cut("/"+rest, "/site-packages/"); ok {
			return inner, nil
		}
		return "//" + rest, nil
	}
	return "", fault.Invalid("the wheel's data folder has a part that is not understood")
}
