package golang

import (
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
)

// Known are sizes of the public database. The last was observed. The others are
// the positions of releases of one of the Go project's own modules, whose time is
// a month after its last commit: releases of that project are in the log within
// hours of their tag, which is within days of that commit, and neighbouring
// releases of its other modules agree. Without them, all that was published
// before this build would look as young as the build.
func (Protocol) Known(verifier string) []ecosystem.LogSize {
	whole, err := VerifierFor(verifier)
	if err != nil || !strings.HasSuffix(whole, publicKey) {
		return nil
	}
	return publicSizes()
}

func publicSizes() []ecosystem.LogSize {
	return []ecosystem.LogSize{
		at(698_842, 2020, 2, 1),
		at(1_969_708, 2020, 12, 12),
		at(6_520_915, 2021, 7, 8),
		at(13_846_090, 2022, 12, 8),
		at(16_177_779, 2023, 3, 29),
		at(18_270_826, 2023, 7, 21),
		at(20_485_579, 2023, 11, 24),
		at(24_955_599, 2024, 4, 14),
		at(28_818_796, 2024, 8, 29),
		at(31_490_473, 2024, 12, 1),
		at(35_066_140, 2025, 3, 16),
		at(40_109_916, 2025, 8, 8),
		at(43_238_014, 2025, 10, 8),
		at(46_242_340, 2025, 12, 11),
		at(48_841_963, 2026, 2, 8),
		at(51_100_454, 2026, 4, 9),
		at(53_802_342, 2026, 6, 7),
		at(57_013_057, 2026, 8, 7),
		at(59_749_839, 2026, 9, 12),
		at(62_544_779, 2026, 9, 23),
		at(67_638_482, 2026, 11, 8),
		{Size: 71_769_961, Unix: time.Date(2026, time.November, 21, 10, 5, 0, 0, time.UTC).Unix()},
	}
}

// at is a size at the beginning of a day.
func at(size int64, year int, month time.Month, day int) ecosystem.LogSize {
	return ecosystem.LogSize{Size: size, Unix: time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()}
}
