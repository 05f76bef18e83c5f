// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The idiom: five attempts, 1, 2, 4 and 8 seconds between them.
export async function retry(call, { attempts = 5, delay = 1000, longest = 8000 } = {}) {
	for (let attempt = 1; ; attempt++) {
		try {
			return await call();
		} catch (error) {
			if (attempt >= attempts)
				throw error;
			const wait = Math.min(delay * 2 ** (attempt - 1), longest);
			await new Promise((resolve) => setTimeout(resolve, wait));
		}
	}
}
