/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sim_maps.h: BPF maps for the simulator: task storage, which lies in the task,
 * and hash maps, all in one table. A map is known by its address.
 *
 * Invariant: memory that a lookup has given out stays the map's until the
 * scheduler is loaded anew, as RCU grants it to a program: a deleted element
 * is kept for the next insertion, never freed.
 */
#ifndef FULCRUM_SIM_MAPS_H
#define FULCRUM_SIM_MAPS_H

#define SIM_HASH_BUCKETS 1024

#define BPF_ANY		0
#define BPF_NOEXIST	1
#define BPF_EXIST	2

static inline void *sim_task_storage(struct task_struct *p, const void *map, u64 size, u64 flags)
{
	for (u32 i = 0; i < SIM_STORAGE_SLOTS; i++) {
		if (p->sim_storage_map[i] == map)
			return p->sim_storage[i];
		if (p->sim_storage_map[i])
			continue;
		if (!(flags & BPF_LOCAL_STORAGE_GET_F_CREATE) || p->sim_storage_denied)
			return NULL;
		p->sim_storage_map[i] = map;
		return p->sim_storage[i];
	}
	return NULL;
}

#define bpf_task_storage_get(map, p, init, flags)			\
({									\
	_Static_assert(sizeof(*(map)->value) <= SIM_STORAGE_BYTES,	\
		       "raise SIM_STORAGE_BYTES");			\
	sim_task_storage(p, map, sizeof(*(map)->value), flags);		\
})

struct sim_element {
	struct sim_element *next;
	const void *map;
	u64 key;
	u64 size;
	u64 value[];
};

static struct sim_element *sim_hash[SIM_HASH_BUCKETS];
static struct sim_element *sim_hash_free;

static inline struct sim_element **sim_hash_find(const void *map, u64 key)
{
	u64 mixed = key * 0x9e3779b97f4a7c15ULL;
	struct sim_element **at = &sim_hash[(mixed >> 32) % SIM_HASH_BUCKETS];

	while (*at && ((*at)->map != map || (*at)->key != key))
		at = &(*at)->next;
	return at;
}

static inline void *sim_hash_lookup(const void *map, u64 key)
{
	struct sim_element *element = *sim_hash_find(map, key);

	return element ? element->value : NULL;
}

static inline u64 sim_hash_count(const void *map)
{
	u64 count = 0;

	for (u32 i = 0; i < SIM_HASH_BUCKETS; i++)
		for (struct sim_element *e = sim_hash[i]; e; e = e->next)
			count += e->map == map;
	return count;
}

static inline struct sim_element *sim_hash_new(u64 size)
{
	struct sim_element *element = sim_hash_free;

	if (element && element->size == size) {
		sim_hash_free = element->next;
		return element;
	}
	return __builtin_calloc(1, sizeof(*element) + size);
}

static inline long sim_hash_update(const void *map, u64 key, const void *value, u64 size,
				   u64 flags, u64 max_entries)
{
	struct sim_element **at = sim_hash_find(map, key);

	if (*at && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!*at && flags == BPF_EXIST)
		return -ENOENT;
	if (!*at) {
		if (sim_hash_count(map) >= max_entries)
			return -E2BIG;
		*at = sim_hash_new(size);
		if (!*at)
			return -ENOMEM;
		(*at)->next = NULL;
		(*at)->map = map;
		(*at)->key = key;
		(*at)->size = size;
	}
	__builtin_memcpy((*at)->value, value, size);
	return 0;
}

static inline long sim_hash_delete(const void *map, u64 key)
{
	struct sim_element **at = sim_hash_find(map, key);
	struct sim_element *element = *at;

	if (!element)
		return -ENOENT;
	*at = element->next;
	element->next = sim_hash_free;
	sim_hash_free = element;
	return 0;
}

/* All maps empty, as freshly loaded. */
static inline void sim_maps_reset(void)
{
	struct sim_element *element;

	for (u32 i = 0; i < SIM_HASH_BUCKETS; i++) {
		while ((element = sim_hash[i])) {
			sim_hash[i] = element->next;
			__builtin_free(element);
		}
	}
	while ((element = sim_hash_free)) {
		sim_hash_free = element->next;
		__builtin_free(element);
	}
}

/* Keys of up to 8 bytes, as they are. */
#define sim_key(map, from)						\
({									\
	u64 ___key = 0;							\
									\
	_Static_assert(sizeof(*(map)->key) <= 8, "a larger key");	\
	__builtin_memcpy(&___key, from, sizeof(*(map)->key));		\
	___key;								\
})
#define sim_max_entries(map) (sizeof(*(map)->max_entries) / sizeof(int))

#define sim_map_type(map) (sizeof(*(map)->type) / sizeof(int))

/* An array's elements exist from the start, as zeroes: here from the first look. */
static inline void *sim_array_lookup(const void *map, u64 key, u64 size, u64 max_entries)
{
	struct sim_element **at = sim_hash_find(map, key);

	if (!*at && key < max_entries) {
		*at = __builtin_calloc(1, sizeof(**at) + size);
		if (!*at)
			return NULL;
		(*at)->map = map;
		(*at)->key = key;
		(*at)->size = size;
	}
	return *at ? (*at)->value : NULL;
}

#define bpf_map_lookup_elem(map, k)					\
	((typeof((map)->value))(sim_map_type(map) == BPF_MAP_TYPE_ARRAY ?	\
		sim_array_lookup(map, sim_key(map, k), sizeof(*(map)->value),	\
				 sim_max_entries(map)) :		\
		sim_hash_lookup(map, sim_key(map, k))))
#define bpf_map_update_elem(map, k, from, flags)				\
	sim_hash_update(map, sim_key(map, k), from, sizeof(*(map)->value), flags,	\
			sim_max_entries(map))
#define bpf_map_delete_elem(map, k) sim_hash_delete(map, sim_key(map, k))

/* Timers lie at the start of an array's element. */
static inline long bpf_timer_init(struct bpf_timer *timer, void *map, u64 flags)
{
	timer->map = map;
	return 0;
}

#define bpf_timer_set_callback(timer, function)				\
	((timer)->callback = (typeof((timer)->callback))(function), 0)

static inline long bpf_timer_start(struct bpf_timer *timer, u64 ns, u64 flags)
{
	world.kernel->start_timer(timer, ns);
	return 0;
}

static inline void sim_fire_timer(struct bpf_timer *timer)
{
	struct sim_element *element = (void *)((char *)timer - __builtin_offsetof(struct sim_element, value));
	u32 key = element->key;

	timer->callback(timer->map, &key, timer);
}

#endif /* FULCRUM_SIM_MAPS_H */
