// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A heap of what waits in the process: the one that is due first is at the top. */

#include <errno.h>
#include <stdlib.h>

#include "internal.h"

int heap_make_room(struct heap *heap)
{
	u32 room = heap->room ? 2 * heap->room : 64;
	struct waiting **items;

	if (heap->count < heap->room)
		return 0;
	items = realloc(heap->items, room * sizeof(*items));
	if (!items)
		return -ENOMEM;
	heap->items = items;
	heap->room = room;
	return 0;
}

static void put(struct heap *heap, struct waiting *w, u32 place)
{
	heap->items[place] = w;
	w->place = place;
}

static void sift_up(struct heap *heap, struct waiting *w, u32 place)
{
	struct waiting *parent;

	while (place) {
		parent = heap->items[(place - 1) / 2];
		if (parent->op.deadline_ns <= w->op.deadline_ns)
			break;
		put(heap, parent, place);
		place = (place - 1) / 2;
	}
	put(heap, w, place);
}

static void sift_down(struct heap *heap, struct waiting *w, u32 place)
{
	u32 child;

	while ((child = 2 * place + 1) < heap->count) {
		if (child + 1 < heap->count && heap->items[child + 1]->op.deadline_ns <
					       heap->items[child]->op.deadline_ns)
			child++;
		if (w->op.deadline_ns <= heap->items[child]->op.deadline_ns)
			break;
		put(heap, heap->items[child], place);
		place = child;
	}
	put(heap, w, place);
}

void heap_add(struct heap *heap, struct waiting *w)
{
	sift_up(heap, w, heap->count++);
}

void heap_remove(struct heap *heap, struct waiting *w)
{
	struct waiting *last = heap->items[--heap->count];

	if (last == w)
		return;
	sift_down(heap, last, w->place);
	sift_up(heap, last, last->place);
}
