package golang

import (
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
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
		sizeAt(698_842, 2020, 2, 1),
		sizeAt(1_969_708, 2020, 12, 12),
		sizeAt(6_520_915, 2021, 7, 8),
		sizeAt(13_846_090, 2022, 12, 8),
		sizeAt(16_177_779, 2023, 3, 29),
		sizeAt(18_270_826, 2023, 7, 21),
		sizeAt(20_485_579, 2023, 11, 24),
		sizeAt(24_955_599, 2024, 4, 14),
		sizeAt(28_818_796, 2024, 8, 29),
		sizeAt(31_490_473, 2024, 12, 1),
		sizeAt(35_066_140, 2025, 3, 16),
		sizeAt(40_109_916, 2025, 8, 8),
		sizeAt(43_238_014, 2025, 10, 8),
		sizeAt(46_242_340, 2025, 12, 11),
		sizeAt(48_841_963, 2026, 2, 8),
		sizeAt(51_100_454, 2026, 4, 9),
		sizeAt(53_802_342, 2026, 6, 7),
		sizeAt(57_013_057, 2026, 8, 7),
		sizeAt(59_749_839, 2026, 9, 12),
		sizeAt(62_544_779, 2026, 9, 23),
		sizeAt(67_638_482, 2026, 11, 8),
		{Size: 71_769_961, Unix: time.Date(2026, time.November, 21, 10, 5, 0, 0, time.UTC).Unix()},
	}
}

// sizeAt is a size at the beginning of a day.
func sizeAt(size int64, year int, month time.Month, day int) ecosystem.LogSize {
	return ecosystem.LogSize{Size: size, Unix: time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()}
}
