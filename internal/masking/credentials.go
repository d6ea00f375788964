package masking

import (
	"net/url"
	"regexp"
	"strings"
)

// minToken is the shortest part of a URL that is taken for a token.
const minToken = 16

var (
	// hookHost and hookSegment are of a URL that says itself that it is a webhook's.
	hookHost    = regexp.MustCompile(`(?i)^(?:[\w-]+\.)*(?:web)?hooks?\.`)
	hookSegment = regexp.MustCompile(`(?i)^(?:web)?hooks?(?:b2)?$`)
	// hexToken is a token in hex or a UUID.
	hexToken = regexp.MustCompile(`(?i)^(?:[0-9a-f]{20,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:@|$)`)
	// smallToken is one in small letters and digits, such as Mattermost's: names have digits in
	// three places at most (mobilenetv2ssd300coco2017).
	smallToken = regexp.MustCompile(`^[a-z]*\d+(?:[a-z]+\d+){3,}[a-z]*$`)
	// signature is a field of a query that opens the path, however short its value is.
	signature = regexp.MustCompile(`(?i)(?:^|&)(?:sig|signature|token)=[^&]`)
	// digit and capital are both in a token that is not in hex, by chance: a word or a file's
	// name seldom has both.
	digit, capital = regexp.MustCompile(`\d`), regexp.MustCompile(`[A-Z]`)
	// letters alone are one token in sixty of 24 characters.
	letters = regexp.MustCompile(`^[A-Za-z]+$`)
)

// minSmallToken is how long a token in small letters is at least.
const minSmallToken = 20

// hasCredential reports whether the value of a query's field looks like a credential.
func hasCredential(field string) bool {
	_, value, _ := strings.Cut(field, "=")

	return isCredential(value)
}

// isCredential reports whether a part of a URL looks like a credential and not like words.
func isCredential(part string) bool {
	if plain, err := url.PathUnescape(part); err == nil { // %20 has a digit
		part = plain
	}

	if len(part) < minToken {
		return false
	}

	capitals := len(capital.FindAllString(part, -1))
	mixed := letters.MatchString(part) && 4*capitals > len(part) && capitals < len(part) // CamelCase has fewer
	small := len(part) >= minSmallToken && smallToken.MatchString(part)

	return mixed || small || digit.MatchString(part) && capitals > 0 || hexToken.MatchString(part)
}
