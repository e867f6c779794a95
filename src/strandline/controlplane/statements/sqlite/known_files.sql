SELECT json_group_array(json_array(f.object_key, f.state = 'uploaded'))
FROM json_each($1) AS r
CROSS JOIN inkless_file f ON f.object_key = r.value->>0
